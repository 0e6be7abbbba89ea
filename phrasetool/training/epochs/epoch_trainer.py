"""Training in epochs, with a checkpoint after each; the best on a development set is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from torch import Tensor

from phrasetool.training.divergence import StartError
from phrasetool.training.epochs.learnt_parameters import LearntParameters
from phrasetool.training.resumable import train_resumably
from phrasetool.training.training_run import TrainingRun

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Report = TypeVar("Report", bound="DataclassInstance")
Tick = Callable[[int], None]


class EpochTrainer(ABC, Generic[Report]):
    """Trains in epochs.

    Args:
        learnt: what is learnt.
        seed: what an epoch draws depends on these numbers and on that of the epoch alone.
        epochs: at most.
        updates: in an epoch.
        patience: epochs without a better one after which training ends; None for never.

    Attributes:
        epoch: epochs done.
        best: the report of the best epoch; None where none is better than another.
    """

    def __init__(
        self, learnt: LearntParameters, seed: tuple[int, ...], epochs: int, updates: int, patience: int | None = None
    ) -> None:
        self.learnt, self.epoch = learnt, 0
        self.best: dict[str, Any] | None = None
        self._seed, self._epochs, self._updates, self._patience = seed, epochs, updates, patience

    def run(self, tick: Tick = lambda examples: None) -> Iterator[Report]:
        """Train to the last epoch, or until patience is at its end; yields after every epoch.

        Args:
            tick: called with the number of examples just seen.
        """
        while self.epoch < self._epochs and not self._is_in_vain():
            # A checkpoint keeps no random state.
            loss = self._pass(np.random.default_rng([*self._seed, self.epoch + 1]), tick)
            self.epoch += 1
            report = self._report(loss)
            self._judge(asdict(report))
            yield report

    def _is_in_vain(self) -> bool:
        if self._patience is None or self.best is None:
            return False
        return bool(self.epoch - self.best["epoch"] >= self._patience)

    def _judge(self, report: dict[str, Any]) -> None:
        goodness = self._goodness(report)
        before = None if self.best is None else self._goodness(self.best)
        if goodness is not None and (before is None or goodness > before):
            self.best = report
            self.learnt.keep()

    @property
    def updates_done(self) -> int:
        """Those of all epochs that are done."""
        return self.epoch * self._updates

    def share(self, number: int) -> float:
        """The share of all updates that is done before that of a number in this epoch, from 0."""
        return (self.updates_done + number) / (self._epochs * self._updates)

    @abstractmethod
    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss."""

    @abstractmethod
    def _report(self, loss: float) -> Report:
        """What there is to say after an epoch with a mean loss."""

    def _goodness(self, report: Mapping[str, Any]) -> float | None:
        """How good an epoch was, the higher the better; None where the last is kept."""
        return None

    @abstractmethod
    def start_errors(self) -> dict[str, StartError]:
        """The error before the first epoch, see `ResumableTrainer`."""

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor needed to go on."""
        return self.learnt.tensors()

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        return {"epoch": self.epoch, "best": self.best}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Go on where `tensors` and `progress` were taken.

        Raises:
            KeyError, RuntimeError, ValueError: they are of other settings or data.
        """
        self.learnt.restore(tensors)
        self.epoch, self.best = progress["epoch"], progress["best"]


Trained = TypeVar("Trained", bound=EpochTrainer[Any])


def train_epochs(run: TrainingRun, identity: Mapping[str, Any], start: Callable[[], Trained]) -> Trained:
    """Train to the end; see `train_resumably` for the arguments, and for what is raised."""

    def resumed(tensors: dict[str, Tensor], progress: dict[str, Any]) -> Trained:
        trainer = start()
        trainer.restore(tensors, progress)
        return trainer

    return train_resumably(run, identity, start, resumed)
