"""Training runs: the model folder, the listeners, and checks of input, divergence and results."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phrasetool.disk.folders import CONFIG, check_folder, check_space, remove_dead, restore
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.watch import ItemTick, Watch, raise_or_warn

if TYPE_CHECKING:
    import torch

    from phrasetool.models.saved_model import SavedModel

# Checkpoint of an interrupted training, and the prefix of its scratch folder while it is written.
CHECKPOINT = "checkpoint.safetensors"
UNFINISHED_CHECKPOINT = ".checkpoint-"
LOG = "training.jsonl"
# Subfolder for checkpoint and log of the search vectors of a classifier, which are trained after it.
SEARCH = "search"
# Training has diverged when the error has risen by this many times the smallest previous error.  With every loss and
# encoder on an eighth of the pairs of Multi30k German-English, no error rose at all: each was at most 0.98 times the
# smallest previous one.
_TIMES = 9.0
# Lower bound of the smallest error, as a share of the initial error: noise is a multiple of an error close to 0.
_LITTLE = 0.01
# Absolute lower bound for all losses, because the error of the first batch may be close to 0 by chance.
_NEXT_TO_NOTHING = 0.1
# Errors in a line of the log, in the order of the search.
_ERRORS = {"joint_error": "joint error", "cross_entropy": "cross-entropy", "loss": "loss"}


@dataclass(frozen=True)
class TrainingRun:
    """Parameters of a training run other than data and settings, for all model families.

    Attributes:
        folder: the model folder; during training, it holds `training.jsonl` and a checkpoint, which is removed at the
            end.
        device: device of the training; None for the CPU.
        resume: continue from the checkpoint in `folder`; the final weights are those of an uninterrupted run.
        overwrite: replace a finished model, or an unfinished training, in `folder`.
        force: save a model even if it is not better than chance.
        record: additional values for `training` in `config.json`.
        warn: called with a message for each failed check that `force` overrides.
        on_report: called after every epoch or iteration, with its entry of the log.
        tick: called with the number of examples processed since the last call.
    """

    folder: Path
    device: torch.device | None = None
    resume: bool = False
    overwrite: bool = False
    force: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)
    warn: Callable[[str], None] = lambda message: None
    on_report: Callable[[Any], None] = lambda report: None
    tick: ItemTick = lambda count: None

    def check(self) -> None:
        """Check the model folder, see `check_model_folder`."""
        check_model_folder(self.folder, resume=self.resume, overwrite=self.overwrite)

    def check_space(self, size: int) -> None:
        """Check that the disk of the model folder has `size` free bytes."""
        check_space(self.folder, size)

    def refuse(self, error: PhraseToolError) -> None:
        """Raise an error, or only warn if `force` is set."""
        raise_or_warn(error, self.force, self.warn)

    def save(self, model: SavedModel) -> None:
        """Save the trained model and remove the checkpoint.

        Raises:
            PhraseToolError: the folder cannot be written.
        """
        model.save(self.folder)
        self.forget_checkpoint()

    def forget_checkpoint(self) -> None:
        """Remove the checkpoint of a training whose model is saved.

        Also removes the scratch folder of a killed run, because a training resumed after its last epoch writes no
        checkpoint.
        """
        with contextlib.suppress(FileNotFoundError):
            (self.folder / CHECKPOINT).unlink()
        remove_dead(self.folder, UNFINISHED_CHECKPOINT)
        self.forget_search()

    def forget_search(self) -> None:
        """Remove checkpoint and log of search vectors, of this or an earlier training; other files are kept."""
        folder = self.folder / SEARCH
        remove_dead(folder, UNFINISHED_CHECKPOINT)
        for name in (CHECKPOINT, LOG):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                (folder / name).unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()


def check_model_folder(folder: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = False) -> None:
    """Reject a model folder that cannot be written or that holds data that would be lost.

    A model that a killed process was about to replace is restored.

    Args:
        folder: the model folder.
        resume: whether the training is resumed from the folder.
        overwrite: whether a finished model, or an unfinished training, may be replaced.

    Raises:
        ModelError: the folder has a finished model or an unfinished training, or has nothing to resume.
        PhraseToolError: the folder cannot be written.
    """
    path = Path(folder)
    check_folder(path)
    try:
        restore(path)
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error
    finished, begun = (path / CONFIG).exists(), (path / CHECKPOINT).is_file()
    if resume and not begun:
        if finished:
            raise ModelError(f"{path}: the training is finished, there is nothing to resume", remedy="train again")
        raise ModelError(f"{path / CHECKPOINT}: no checkpoint to resume from", remedy="train without a checkpoint")
    if resume or overwrite:
        return
    if begun:
        raise ModelError(
            f"{path}: the folder already has an unfinished training", remedy="resume or replace a training"
        )
    if finished:
        raise ModelError(f"{path}: the folder already has a finished model", remedy="overwrite the model")


@dataclass(frozen=True)
class StartError:
    """Error before the first iteration.

    Attributes:
        error: error of a batch.
        least: a change that is small compared with the error.
    """

    error: float
    least: float

    @classmethod
    def of(cls, error: float, unbounded: float = 0.0) -> StartError:
        """Return the error at the start.

        Args:
            error: error of a batch.
            unbounded: for errors that can be negative, the smallest change to consider; else 0.
        """
        return cls(error, max(abs(error), unbounded) if unbounded else _LITTLE * error)


class DivergedError(PhraseToolError):
    """Error of a training run that diverged, so that its parameters are useless."""


def divergence(history: Iterable[Mapping[str, Any]], starts: Mapping[str, StartError]) -> str | None:
    """Return the problem of the last line of a log; None if there is none.

    Args:
        history: the lines of the log, at least one.
        starts: the error before the first iteration for each phase of training.

    Returns:
        A message such as `the joint error is nan`.
    """
    *before, last = history
    key = next(key for key in _ERRORS if key in last)
    error, phase = last[key], last.get("phase", "train")
    if not math.isfinite(error):
        return f"the {_ERRORS[key]} is {error}"
    start = starts[phase]
    best = min([start.error, *(line[key] for line in before if line.get("phase", "train") == phase)])
    if error - best > _TIMES * max(abs(best), start.least, _NEXT_TO_NOTHING):
        return f"the {_ERRORS[key]} is {error:.4g}, it was {best:.4g} {'before' if before else 'at the start'}"
    return None


def guessing(folder: Path, fault: str, learning_rate: float) -> DivergedError:
    """Return the error for a model that is not better than chance.

    Args:
        folder: the model folder.
        fault: description of the failed check.
        learning_rate: learning rate of the training.
    """
    message = f"{folder}: the trained model is no better than chance: {fault}"
    advice = f"train again with a smaller learning rate than {learning_rate:g}, or with more epochs"
    return DivergedError(f"{message}; {advice}", remedy="keep a poor model")


# Called with a message about implausible input; raises an error, or warns and returns.
ProblemHandler = Callable[[str], None]


def problem_handler(watch: Watch, force: bool) -> ProblemHandler:
    """Return a function that raises an error, or only warns if `force` is set."""

    def report_problem(message: str) -> None:
        raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)

    return report_problem
