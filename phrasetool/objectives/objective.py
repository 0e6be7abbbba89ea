"""Base classes of objectives: the loss of predicted vectors against those of the other language.

An objective is a frozen dataclass that derives from one of them, and whose fields are declared by
`phrasetool.options.option`.  It is registered by one line in `phrasetool.objectives.OBJECTIVES`.  Its module must not
import torch when it is imported (methods may).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from phrasetool.options import Options

if TYPE_CHECKING:
    from torch import Tensor


# Settings for losses of directions.  Both languages move towards each other's vectors of the iteration before, and
# hardly anything parts phrases that point the same way from the start, so word vectors are spread out; and beside a
# reconstruction error these losses learn less.
SPREAD: Mapping[str, Any] = {"vectors": "centred", "alpha": 0.0, "learning_rate": 0.01}


@dataclass(frozen=True)
class FrozenBatch:
    """The other language during co-training, for one batch of B pairs; no gradient goes into it.

    Attributes:
        positive: vectors of the true partners, shape (B, n).
        corrupted: vectors of the partners with their words replaced by random ones, shape (B, n); None if the
            objective does not ask for them.
        pool: unit vectors of all distinct phrases of the other language, shape (P, n).
        rng: draws for this batch; the same for the same seed whatever the threads do.
    """

    positive: Tensor
    corrupted: Tensor | None
    pool: Tensor
    rng: np.random.Generator


@dataclass(frozen=True)
class Objective(Options, ABC):
    """Base of all objectives.

    Attributes:
        name: name for users (`--loss`).
        summary: description of some ten words, for `--help`.
        defaults: settings of training that differ from the general ones.
        bounded: whether no loss is below zero; divergence is detected by other measures where losses can be.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    defaults: ClassVar[Mapping[str, Any]] = {}
    bounded: ClassVar[bool] = True


class JointObjective(Objective):
    """Objective under which both languages are updated together, on vectors of one batch."""

    @abstractmethod
    def batch_losses(self, predicted: Tensor, other: Tensor, log_shares: tuple[Tensor, Tensor]) -> Tensor:
        """Losses of one direction, shape (B,).

        Args:
            predicted: phrases of one side carried into the other side's space, shape (B, n).
            other: the other side's phrase vectors, shape (B, n); row i belongs to row i.
            log_shares: of both, shape (B,) each, the logarithm of the share of the training pairs that contain the
                phrase: the probability of drawing it as a candidate.
        """


class CoTrainingObjective(Objective):
    """Objective under which each language is updated while the other is frozen.

    Attributes:
        needs_corrupted: whether the losses need `FrozenBatch.corrupted`.
    """

    needs_corrupted: ClassVar[bool] = False

    @property
    def corrupts_by_frequency(self) -> bool:
        """Whether the random words of corrupted phrases are drawn by frequency; else all words alike."""
        return False

    @abstractmethod
    def frozen_losses(self, predicted: Tensor, frozen: FrozenBatch) -> Tensor:
        """Losses of one direction, shape (B,), finite for any input.

        Args:
            predicted: phrases carried into the other side's space, shape (B, n).
            frozen: the other side.
        """
