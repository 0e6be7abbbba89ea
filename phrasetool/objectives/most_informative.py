"""The most informative negative (Lazaridou et al. 2015; Bhat et al. 2020, section 3).

Of the phrases of the other language, the one whose vector is closest to p - u, what the prediction has too much of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.margin import MARGIN, MARGIN_HELP, checked_margin, margin_loss, unit_vectors
from phrasetool.objectives.objective import SPREAD
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch

# Two unit vectors whose cosine is as near to 1 are the same up to rounding, in single precision and 1,024 dimensions.
_SAME = 1e-6
# Phrases compared at once: their cosines with a batch stay in the cache.
_AT_ONCE = 4096


def most_informative(predicted: Tensor, positive: Tensor, pool: Tensor) -> Tensor:
    """For every pair, the vector of the pool with the largest cosine to predicted - positive, but not positive itself.

    Args:
        predicted, positive: unit (or zero) vectors, shape (B, n).
        pool: unit (or zero) vectors, shape (P, n).

    Returns:
        shape (B, n); the first of several as close; zero where the pool holds nothing but the partner.
    """
    wanted = predicted - positive
    picked = pool[_closest(wanted, pool)]
    same = (picked * positive).sum(1) >= 1 - _SAME
    # Almost never: the partner is where predicted - positive points away from.
    if same.any():
        rows = same.nonzero().squeeze(1)
        cosines = (wanted[rows] @ pool.T).masked_fill(positive[rows] @ pool.T >= 1 - _SAME, -float("inf"))
        best, index = cosines.max(1)
        picked[rows] = pool[index] * best.isfinite()[:, None]
    return picked


def _closest(wanted: Tensor, pool: Tensor) -> Tensor:
    """Rows of the pool with the largest product, shape (B,)."""
    best, index = (wanted @ pool[:_AT_ONCE].T).max(1)
    for start in range(_AT_ONCE, len(pool), _AT_ONCE):
        value, there = (wanted @ pool[start : start + _AT_ONCE].T).max(1)
        index = (there + start).where(value > best, index)
        best = value.maximum(best)
    return index


@dataclass(frozen=True)
class MostInformative:
    """Margin loss against the most informative negative, as `--loss most-informative`.

    Attributes:
        margin: lambda.
        pool_size: phrases to choose from, drawn anew for every batch; 0 for all.

    Raises:
        ValueError: an option is out of range.
    """

    margin: float = option(MARGIN, MARGIN_HELP)
    # The worst of a few hundred makes a better model than the worst of thousands, sooner.
    pool_size: int = option(256, "Phrases to find the negative among, drawn for every batch; 0: all.")

    name: ClassVar[str] = "most-informative"
    summary: ClassVar[str] = "have a higher cosine with the partner than with the worst offender"
    defaults: ClassVar[Mapping[str, Any]] = SPREAD
    needs_corrupted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_margin(self.margin)
        if self.pool_size < 0:
            raise ValueError(f"pool_size is {self.pool_size!r}, expected 0 or more")

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Margin loss against the phrase of the pool, or of a sample of it, that is closest to p - u.

        Args:
            predicted: phrases carried into the other side's space, shape (B, n).
            frozen: the other side.

        Returns:
            shape (B,).
        """
        import torch

        pool = frozen.pool
        if 0 < self.pool_size < len(pool):
            drawn = frozen.rng.choice(len(pool), self.pool_size, replace=False, shuffle=False)
            pool = pool[torch.from_numpy(drawn).to(pool.device)]
        unit, positive = unit_vectors(predicted), unit_vectors(frozen.positive)
        negative = most_informative(unit.detach(), positive, pool)
        return margin_loss(unit, positive, negative, self.margin)
