"""Syn-margin: the margin loss against a negative made of the prediction and the target alone (Bhat et al. 2020).

With p and u of length one, p = l1 u + l2 u_orth, where u_orth is the unit vector of what p has orthogonal to u.  The
loss against any unit vector x, with x.u = l3 and x.u_orth = l4, is (section 3.1)

    max(0, margin + l4 u_orth.p - (1 - l3) u.p)

By projection (section 3.2) x = u_orth, that is l3 = 0 and l4 = 1.  By difference x is the unit vector of p - u; with a
the angle between p and u, l3 = -sin(a / 2) and l4 = cos(a / 2).  Both are constants to the gradient.

Where p = u the negative is zero, so the loss is max(0, margin - 1); where p = -u, u_orth is zero, so the loss is
margin + 1, and has no gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.margin import MARGIN, MARGIN_HELP, checked_margin, margin_loss, unit_vectors
from phrasetool.objectives.objective import SPREAD
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch


def orthogonal_negative(predicted: Tensor, positive: Tensor) -> Tensor:
    """u_orth, the unit vector of p - (p.u) u.

    Args:
        predicted, positive: unit (or zero) vectors, shape (B, n).

    Returns:
        shape (B, n); zero where p is along u.
    """
    rest = predicted - (predicted * positive).sum(1, keepdim=True) * positive
    # What rounding leaves along u is large beside a small rest; a second projection takes it out.
    rest = rest - (rest * positive).sum(1, keepdim=True) * positive
    return unit_vectors(rest)


def difference_negative(predicted: Tensor, positive: Tensor) -> Tensor:
    """u_diff, the unit vector of p - u.

    Args:
        predicted, positive: unit (or zero) vectors, shape (B, n).

    Returns:
        shape (B, n); zero where p is u.
    """
    return unit_vectors(predicted - positive)


@dataclass(frozen=True)
class _SynMargin(ABC):
    """What both share.

    Attributes:
        margin: lambda.

    Raises:
        ValueError: the margin is negative.
    """

    margin: float = option(MARGIN, MARGIN_HELP)

    defaults: ClassVar[Mapping[str, Any]] = SPREAD
    needs_corrupted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_margin(self.margin)

    @staticmethod
    @abstractmethod
    def negative(predicted: Tensor, positive: Tensor) -> Tensor:
        """The negative made of unit vectors p and u, shape (B, n)."""

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """max(0, margin + negative.p - u.p), the negative a constant.

        Args:
            predicted: phrases carried into the other side's space, shape (B, n).
            frozen: the other side.

        Returns:
            shape (B,).
        """
        unit, positive = unit_vectors(predicted), unit_vectors(frozen.positive)
        return margin_loss(unit, positive, self.negative(unit.detach(), positive), self.margin)


class SynProjection(_SynMargin):
    """Margin loss against u_orth, as `--loss syn-projection`."""

    name: ClassVar[str] = "syn-projection"
    summary: ClassVar[str] = "margin against what the prediction has orthogonal to the partner"
    negative = staticmethod(orthogonal_negative)


class SynDifference(_SynMargin):
    """Margin loss against u_diff, as `--loss syn-difference`."""

    name: ClassVar[str] = "syn-difference"
    summary: ClassVar[str] = "margin against the difference of the prediction and the partner"
    negative = staticmethod(difference_negative)
