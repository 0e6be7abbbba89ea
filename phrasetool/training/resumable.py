"""Training that writes a log and a checkpoint after every iteration, and can go on from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from torch import Tensor

from phrasetool.errors import ModelError
from phrasetool.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from phrasetool.training.log import write_log

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class ResumableTrainer(Protocol):
    """What trains, an iteration at a time."""

    def run(self, tick: Callable[[int], None]) -> Iterator[DataclassInstance]:
        """Train until finished; yields a report after every iteration."""

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor needed to go on."""

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""


Trained = TypeVar("Trained", bound=ResumableTrainer)


def train_resumably(
    folder: Path,
    identity: Mapping[str, Any],
    start: Callable[[], Trained],
    resumed: Callable[[dict[str, Tensor], dict[str, Any]], Trained],
    *,
    resume: bool,
    on_report: Callable[[Any], None],
    tick: Callable[[int], None],
) -> Trained:
    """Train until finished.

    An interrupted run goes on with `resume` and ends with the same weights as one that was not.

    Args:
        folder: gets `training.jsonl` and the checkpoint.
        identity: of what is learnt from, in its first item, and of the settings, as JSON values.
        start: makes a trainer; not called when resuming.
        resumed: makes a trainer that goes on from tensors and progress.
        resume: go on from the checkpoint in `folder`.
        on_report: called after every iteration.
        tick: called with the number of examples just seen.

    Raises:
        ModelError: the checkpoint is missing, damaged, or of other data or settings.
        PhraseToolError: the folder cannot be written.
    """
    history: list[dict[str, Any]] = []
    if resume:
        tensors, state = load_checkpoint(folder)
        what = next(iter(identity))
        if state["identity"] != identity:
            raise ModelError(f"{folder / CHECKPOINT}: made from other {what} or with other settings; cannot resume")
        history = state["history"]
        try:
            trainer = resumed(tensors, state["progress"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise ModelError(f"{folder / CHECKPOINT}: does not fit these {what} and settings ({error})") from error
    else:
        trainer = start()
    write_log(folder, history)
    for report in trainer.run(tick):
        history.append(asdict(report))
        write_log(folder, history)
        state = {"identity": identity, "progress": trainer.progress(), "history": history}
        save_checkpoint(folder, trainer.tensors(), state)
        on_report(report)
    return trainer


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a training whose model is saved."""
    with contextlib.suppress(FileNotFoundError):
        (folder / CHECKPOINT).unlink()
