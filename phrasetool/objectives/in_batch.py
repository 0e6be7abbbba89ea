"""Contrastive objective: tell the true partner from the other phrases of the batch, corrected for their frequency.

Symmetric cross-entropy over cosines at a temperature, as in CLIP (Radford et al. 2021) and bilingual sentence
encoders (Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence Embeddings").

The candidates of a batch are drawn in proportion to their frequency in the pairs.  Without a correction, the optimal
score of s and t is their pointwise mutual information (Oord et al. 2018, "Representation Learning with Contrastive
Predictive Coding"), which ranks frequent translations low: a phrase that occurs often is often a wrong candidate.
Therefore log q, the logarithm of the probability of drawing the candidate, is subtracted from its logit (Bengio and
Senecal 2008, "Adaptive importance sampling to accelerate training of a neural probabilistic language model"; Yi et al.
2019, "Sampling-bias-corrected neural modeling for large corpus item recommendations").  The optimal score is then
log p(t|s) plus a constant for each s, and log p(s|t) plus a constant for each t.

No phrase of the batch is left out as "a second translation": leaving some out shifts the optimum for phrases with many
partners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.objective import JointObjective
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

# exp(-2 / temperature), the smallest term there can be, must not vanish in single precision.
_LOWEST_TEMPERATURE = 0.03


@dataclass(frozen=True)
class InBatch(JointObjective):
    """Cross-entropy over the phrases of a batch, as `--loss in-batch`.

    Attributes:
        temperature: what cosines are divided by.
        smoothing: label smoothing.
        correction: factor of log q; 1 for the optimum log p(t|s), 0 for pointwise mutual information.

    Raises:
        ValueError: an option is out of range.
    """

    temperature: float = option(0.05, "Divisor of the cosines; at least 0.03.", ge=_LOWEST_TEMPERATURE)
    smoothing: float = option(0.25, "Share of the target distribution spread evenly over the batch.", ge=0, le=1)
    correction: float = option(1.0, "Strength of the frequency correction, from 0 (none) to 1.", ge=0, le=1)

    name: ClassVar[str] = "in-batch"
    summary: ClassVar[str] = "tell the true partner from the other phrases of the batch, whatever their frequency"
    # Chosen on the development sets of the pruning study.
    defaults: ClassVar[Mapping[str, Any]] = {"count_exponent": 0.7}

    def batch_losses(self, predicted: Tensor, other: Tensor, log_shares: tuple[Tensor, Tensor]) -> Tensor:
        """The cross-entropies of choosing the partner, from both ends; see `JointObjective`."""
        from phrasetool.objectives.in_batch_cross_entropy import cosines, in_batch_cross_entropy

        rows, columns = (self.correction * values for values in log_shares)
        return in_batch_cross_entropy(cosines(predicted, other), self.temperature, self.smoothing, (rows, columns))
