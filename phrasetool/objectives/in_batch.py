"""Contrastive objective: tell the true partner from the other phrases of the batch.

Symmetric cross-entropy over cosines at a temperature, as in CLIP (Radford et al. 2021) and bilingual sentence
encoders (Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence Embeddings").

No phrase of the batch is left out as "a second translation".  The best score is then the pointwise mutual information
of s and t (Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding"), which is what ranks the
true partner among phrases as frequent as these; leaving some out shifts it for phrases with many partners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

# exp(-2 / temperature), the smallest term there can be, must not vanish in single precision.
_LOWEST_TEMPERATURE = 0.03


@dataclass(frozen=True)
class InBatch:
    """Cross-entropy over the phrases of a batch, as `--loss in-batch`.

    Attributes:
        temperature: what cosines are divided by.
        smoothing: label smoothing.

    Raises:
        ValueError: an option is out of range.
    """

    temperature: float = option(0.1, "What cosines are divided by; at least 0.03.")
    smoothing: float = option(0.25, "Share of the wanted distribution spread evenly over the batch.")

    name: ClassVar[str] = "in-batch"
    summary: ClassVar[str] = "tell the true partner from the other phrases of the batch"
    defaults: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        if not self.temperature >= _LOWEST_TEMPERATURE:
            raise ValueError(
                f"temperature is {self.temperature!r}, expected at least {_LOWEST_TEMPERATURE}, "
                "below which exponentials underflow"
            )
        if not 0 <= self.smoothing <= 1:
            raise ValueError(f"smoothing is {self.smoothing!r}, expected between 0 and 1")

    def batch_losses(self, predicted: Tensor, other: Tensor) -> Tensor:
        """The cross-entropies of picking the partner, from both ends; see `JointObjective`."""
        from phrasetool.objectives.in_batch_cross_entropy import cosines, in_batch_cross_entropy

        return in_batch_cross_entropy(cosines(predicted, other), self.temperature, self.smoothing)
