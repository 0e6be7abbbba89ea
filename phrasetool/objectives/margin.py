"""The margin loss over cosines (Bhat, Kumar and Tsvetkov 2020, Eq. 1), which four objectives share.

    L = max(0, margin + u'.p - u.p)

with p the predicted, u the true and u' a negative vector, all of length one.  The objectives differ in their u':

Sampled (sections 3, 4): random phrases of the other language.

Most informative (section 3; Lazaridou et al. 2015): of the phrases of the other language, the one whose vector is
closest to p - u, what the prediction has too much of.

Syn-margin: a vector made of the prediction and the target alone.  p = l1 u + l2 u_orth, where u_orth is the unit vector
of what p has orthogonal to u.  The loss against any unit vector x, with x.u = l3 and x.u_orth = l4, is (section 3.1)

    max(0, margin + l4 u_orth.p - (1 - l3) u.p)

By projection (section 3.2) x = u_orth, that is l3 = 0 and l4 = 1.  By difference x is the unit vector of p - u; with a
the angle between p and u, l3 = -sin(a / 2) and l4 = cos(a / 2).  Both are constants to the gradient.  Where p = u the
negative is zero, so the loss is max(0, margin - 1); where p = -u, u_orth is zero, so the loss is margin + 1, and has no
gradient.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.objective import SPREAD, CoTrainingObjective
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch

# Shorter vectors count as zero: in single precision, the direction of what is left of a difference of two unit vectors
# is rounding noise there; and the gradient of a direction grows as one over the length.
SHORTEST = 1e-6
# Two unit vectors whose cosine is as near to 1 are the same up to rounding, in single precision and 1,024 dimensions.
_SAME = 1e-6
# Phrases compared at once: their cosines with a batch stay in the cache.
_AT_ONCE = 4096


def unit_vectors(vectors: Tensor) -> Tensor:
    """The vectors at length one; a zero vector (shorter than `SHORTEST`) is zero, and no gradient comes through it.

    Args:
        vectors: shape (B, n).

    Returns:
        shape (B, n).
    """
    lengths: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors * (lengths.clamp_min(SHORTEST).reciprocal() * (lengths >= SHORTEST))


def margin_loss(predicted: Tensor, positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """max(0, margin + negative.predicted - positive.predicted) (Eq. 1).

    Args:
        predicted, positive, negative: unit (or zero) vectors, shape (B, n).
        margin: lambda.

    Returns:
        shape (B,).
    """
    return (((negative - positive) * predicted).sum(1) + margin).relu()


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
class _MarginLoss(CoTrainingObjective):
    """What all four have.

    Attributes:
        margin: lambda.

    Raises:
        ValueError: the margin is negative.
    """

    # The paper does not give its own.  With this one a pair teaches something as long as its cosine is below 1, against
    # a negative that is orthogonal to the prediction.  All losses that share it learn less with smaller ones.
    margin: float = option(
        1.0, "By how much the cosine with the true partner must be above that with the negative.", ge=0
    )

    defaults: ClassVar[Mapping[str, Any]] = SPREAD


@dataclass(frozen=True)
class Sampled(_MarginLoss):
    """Margin loss, mean over random phrases, as `--loss sampled`.

    Attributes:
        negatives: k, the phrases drawn for every pair.

    Raises:
        ValueError: an option is out of range.
    """

    # The paper's.  Twenty make no better model of 54,000 pairs, and a slightly better one of 16,000.
    negatives: int = option(5, "Random phrases drawn for every pair.", ge=1)

    name: ClassVar[str] = "sampled"
    summary: ClassVar[str] = "have a higher cosine with the partner than with random phrases"

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Mean margin loss over k draws from the pool, evenly and with replacement; see `CoTrainingObjective`.

        A draw may be the partner itself; it costs the margin then, and has no gradient.
        """
        import torch

        drawn = frozen.rng.integers(0, len(frozen.pool), (len(predicted), self.negatives))
        index = torch.from_numpy(drawn).to(frozen.pool.device)
        unit = unit_vectors(predicted)
        right = (unit * unit_vectors(frozen.positive)).sum(1, keepdim=True)
        wrong = torch.bmm(frozen.pool[index], unit[:, :, None]).squeeze(2)
        return (wrong - right + self.margin).relu().mean(1)


class _OneNegative(_MarginLoss):
    """Margin loss against one negative, which is a constant to the gradient."""

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """max(0, margin + negative.p - u.p); see `CoTrainingObjective`."""
        unit, positive = unit_vectors(predicted), unit_vectors(frozen.positive)
        return margin_loss(unit, positive, self.negative(unit.detach(), positive, frozen), self.margin)

    @abstractmethod
    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """The negatives of unit vectors p and u, shape (B, n)."""


@dataclass(frozen=True)
class MostInformative(_OneNegative):
    """Margin loss against the most informative negative, as `--loss most-informative`.

    Attributes:
        pool_size: phrases to choose from, drawn anew for every batch; 0 for all.

    Raises:
        ValueError: an option is out of range.
    """

    # The worst of a few hundred makes a better model than the worst of thousands, sooner.
    pool_size: int = option(256, "Phrases to find the negative among, drawn for every batch; 0: all.", ge=0)

    name: ClassVar[str] = "most-informative"
    summary: ClassVar[str] = "have a higher cosine with the partner than with the worst offender"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """The phrases of the pool, or of a sample of it, that are closest to p - u."""
        import torch

        pool = frozen.pool
        if 0 < self.pool_size < len(pool):
            drawn = frozen.rng.choice(len(pool), self.pool_size, replace=False, shuffle=False)
            pool = pool[torch.from_numpy(drawn).to(pool.device)]
        return most_informative(predicted, positive, pool)


class SynProjection(_OneNegative):
    """Margin loss against u_orth, as `--loss syn-projection`."""

    name: ClassVar[str] = "syn-projection"
    summary: ClassVar[str] = "margin against what the prediction has orthogonal to the partner"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """u_orth, the unit vector of p - (p.u) u; zero where p is along u."""
        rest = predicted - (predicted * positive).sum(1, keepdim=True) * positive
        # What rounding leaves along u is large beside a small rest; a second projection takes it out.
        rest = rest - (rest * positive).sum(1, keepdim=True) * positive
        return unit_vectors(rest)


class SynDifference(_OneNegative):
    """Margin loss against u_diff, as `--loss syn-difference`."""

    name: ClassVar[str] = "syn-difference"
    summary: ClassVar[str] = "margin against the difference of the prediction and the partner"

    def negative(self, predicted: Tensor, positive: Tensor, frozen: FrozenBatch) -> Tensor:
        """u_diff, the unit vector of p - u; zero where p is u."""
        return unit_vectors(predicted - positive)
