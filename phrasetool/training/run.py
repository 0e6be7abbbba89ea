"""A run of training: the model folder, the listeners, and checks of input, divergence and results."""

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

# Checkpoint that an interrupted training leaves, and the beginning of its names while it is written.
CHECKPOINT = "checkpoint.safetensors"
UNFINISHED_CHECKPOINT = ".checkpoint-"
# An error is too high when it has risen by this many times the smallest one before.  With every
# loss and encoder on an eighth of the pairs of Multi30k German-English, no error rose at all: each was at most 0.98
# times the smallest one before.
_TIMES = 9.0
# Where nearly nothing is left of an error, noise is many times it; this share of the error at the start is little.
_LITTLE = 0.01
# Below this an error is as good as zero in every loss: a first batch may by chance have nothing to learn.
_NEXT_TO_NOTHING = 0.1
# The errors of a line of the log, in the order in which they are looked for.
_ERRORS = {"joint_error": "joint error", "cross_entropy": "cross-entropy", "loss": "loss"}


@dataclass(frozen=True)
class TrainingRun:
    """How any model is trained, apart from its data and settings.

    Attributes:
        folder: the model folder; gets `training.jsonl` and a checkpoint on the way, which goes when all is done.
        device: where to train; CPU by default.
        resume: go on from the checkpoint in `folder`: an interrupted run ends with the weights of one that was not.
        overwrite: a finished model, or an unfinished training, in `folder` may be replaced.
        force: save a model even if it is not better than guessing.
        record: more to remember in `config.json`, under `training`.
        warn: called with a message for each failed check that `force` overrides.
        on_report: called after every epoch or iteration, with its entry of the log.
        tick: called with the number of examples just seen.
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
        """Check that the disk of the model folder has this many free bytes."""
        check_space(self.folder, size)

    def refuse(self, error: PhraseToolError) -> None:
        """Raise an error, or only warn of it if training is forced."""
        raise_or_warn(error, self.force, self.warn)

    def save(self, model: SavedModel) -> None:
        """Save what was trained, in the place of the checkpoint.

        Raises:
            PhraseToolError: the folder cannot be written.
        """
        model.save(self.folder)
        self.forget_checkpoint()

    def forget_checkpoint(self) -> None:
        """Remove the checkpoint of a training whose model is saved.

        One that a killed run was writing goes, too: who resumes after the last epoch writes none.
        """
        with contextlib.suppress(FileNotFoundError):
            (self.folder / CHECKPOINT).unlink()
        remove_dead(self.folder, UNFINISHED_CHECKPOINT)


def check_model_folder(folder: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = False) -> None:
    """Refuse to train into a folder: one that cannot be written, or that holds what would be lost.

    A model that a killed process was about to replace is put back.

    Args:
        folder: the model folder.
        resume: whether the training goes on from it.
        overwrite: whether a finished model, or an unfinished training, may be replaced.

    Raises:
        ModelError: there is a finished model, or an unfinished training; or there is nothing to resume.
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
        raise ModelError(f"{path}: there is an unfinished training already", remedy="resume or replace a training")
    if finished:
        raise ModelError(f"{path}: there is a finished model already", remedy="overwrite the model")


@dataclass(frozen=True)
class StartError:
    """Error before the first iteration.

    Attributes:
        error: of a batch.
        least: a change that is small compared with it.
    """

    error: float
    least: float

    @classmethod
    def of(cls, error: float, unbounded: float = 0.0) -> StartError:
        """The error at the start.

        Args:
            error: of a batch.
            unbounded: for errors that can be below zero, their least change; else 0.
        """
        return cls(error, max(abs(error), unbounded) if unbounded else _LITTLE * error)


class DivergedError(PhraseToolError):
    """A training whose parameters are of no use any more."""


def divergence(history: Iterable[Mapping[str, Any]], starts: Mapping[str, StartError]) -> str | None:
    """Return the problem of the last line of a log; None if there is none.

    Args:
        history: the lines of the log, at least one.
        starts: the error before the first iteration, by the phase of training.

    Returns:
        Such as `the joint error is nan`.
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
    """Return the error for a model that is not better than guessing.

    Args:
        folder: where it was trained.
        fault: how that was seen.
        learning_rate: that it was trained with.
    """
    message = f"{folder}: the trained model is no better than chance: {fault}"
    advice = f"train again with a smaller learning rate than {learning_rate:g}, or with more epochs"
    return DivergedError(f"{message}; {advice}", remedy="keep a poor model")


# Called with the problem of an implausible input: raises, or warns and continues.
ProblemHandler = Callable[[str], None]


def problem_handler(watch: Watch, force: bool) -> ProblemHandler:
    """Return a function that raises at the first problem, or with `force` warns and continues."""

    def report_problem(message: str) -> None:
        raise_or_warn(PhraseToolError(message, remedy="go on"), force, watch.warn)

    return report_problem
