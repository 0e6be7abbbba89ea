"""One minus the cosine: what the losses of directions are without a margin and without a negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from phrasetool.objectives.margin import unit_vectors
from phrasetool.objectives.objective import SPREAD, CoTrainingObjective

if TYPE_CHECKING:
    from torch import Tensor

    from phrasetool.objectives.objective import FrozenBatch


@dataclass(frozen=True)
class Cosine(CoTrainingObjective):
    """1 - cos(p, u), as `--loss cosine` (a baseline of Kumar and Tsvetkov 2019)."""

    name: ClassVar[str] = "cosine"
    summary: ClassVar[str] = "have a high cosine with the partner, and nothing else"
    defaults: ClassVar[Mapping[str, Any]] = SPREAD

    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """1 - cos(p, u), from 0 to 2; 1 where a vector is zero.  See `CoTrainingObjective`."""
        return 1 - (unit_vectors(predicted) * unit_vectors(frozen.positive)).sum(1)
