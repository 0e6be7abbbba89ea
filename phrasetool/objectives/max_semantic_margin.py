"""The paper's objective: semantic distance with a margin against a corrupted phrase (Zhang et al. 2014, Eq. 9, 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.objective import CoTrainingObjective
from phrasetool.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch

CORRUPTIONS = ("frequency", "uniform")


def semantic_error(transformed: Tensor, other: Tensor) -> Tensor:
    """E_sem(s|t) = 1/2 ||p_t - f(Wl_s p_s + bl_s)||^2 (Eq. 9).

    Args:
        transformed: f(Wl p + bl) of one side, shape (B, n).
        other: phrase vectors of the other side, shape (B, n).

    Returns:
        shape (B,).
    """
    return 0.5 * (other - transformed).square().sum(1)


@dataclass(frozen=True)
class MaxMargin(CoTrainingObjective):
    """Max-semantic-margin against random words, as `--loss max-margin`.

    Attributes:
        margin: by how much the distance to the partner must be smaller.
        corruption: distribution of the random words of the corrupted phrases: `frequency`, that of the running words,
            or `uniform`, all words of the vocabulary alike.

    Raises:
        ValueError: the margin is negative, or the distribution is unknown.
    """

    margin: float = option(1.0, "By how much the true partner must be nearer than the corrupted one.", ge=0)
    corruption: str = option("frequency", "Draw random words by frequency or uniform.", choices=CORRUPTIONS)

    name: ClassVar[str] = "max-margin"
    summary: ClassVar[str] = "be nearer to the partner than to it with random words (BRAE's)"
    # Section 4.1 of the paper, and updates for each pair (Eq. 14 to 16); pretrain_iterations and patience are ours.
    defaults: ClassVar[Mapping[str, Any]] = {
        "alpha": 0.15, "learning_rate": 0.01, "schedule": "constant", "batch_size": 1, "optimizer": "sgd",
        "lambda_words": 1e-2, "lambda_rec": 1e-3, "lambda_sem": 1e-3, "pretrain_iterations": 5, "start": "normal",
        "patience": 5,
    }  # fmt: skip
    needs_corrupted: ClassVar[bool] = True

    @property
    def corrupts_by_frequency(self) -> bool:
        """See `CoTrainingObjective`."""
        return self.corruption == "frequency"

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """E*_sem(s|t) = max(0, E_sem(s|t) - E_sem(s|t') + margin) (Eq. 12); see `CoTrainingObjective`."""
        assert frozen.corrupted is not None
        right, wrong = semantic_error(predicted, frozen.positive), semantic_error(predicted, frozen.corrupted)
        return (right - wrong + self.margin).relu()
