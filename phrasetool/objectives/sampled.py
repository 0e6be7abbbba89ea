"""Negative sampling: the margin loss against random phrases of the other language (Bhat et al. 2020, sections 3, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.margin import MARGIN, MARGIN_HELP, checked_margin, unit_vectors
from phrasetool.objectives.objective import SPREAD
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch


@dataclass(frozen=True)
class Sampled:
    """Margin loss, mean over random phrases, as `--loss sampled`.

    Attributes:
        margin: lambda.
        negatives: k, the phrases drawn for every pair.

    Raises:
        ValueError: an option is out of range.
    """

    margin: float = option(MARGIN, MARGIN_HELP)
    # The paper's.  Twenty make no better model of 54,000 pairs, and a slightly better one of 16,000.
    negatives: int = option(5, "Random phrases drawn for every pair.")

    name: ClassVar[str] = "sampled"
    summary: ClassVar[str] = "have a higher cosine with the partner than with random phrases"
    defaults: ClassVar[Mapping[str, Any]] = SPREAD
    needs_corrupted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_margin(self.margin)
        if self.negatives < 1:
            raise ValueError(f"negatives is {self.negatives!r}, expected at least 1")

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Mean margin loss over k draws from the pool, evenly and with replacement.

        A draw may be the partner itself; it costs the margin then, and has no gradient.

        Args:
            predicted: phrases carried into the other side's space, shape (B, n).
            frozen: the other side.

        Returns:
            shape (B,).
        """
        import torch

        drawn = frozen.rng.integers(0, len(frozen.pool), (len(predicted), self.negatives))
        index = torch.from_numpy(drawn).to(frozen.pool.device)
        unit = unit_vectors(predicted)
        right = (unit * unit_vectors(frozen.positive)).sum(1, keepdim=True)
        wrong = torch.bmm(frozen.pool[index], unit[:, :, None]).squeeze(2)
        return (wrong - right + self.margin).relu().mean(1)
