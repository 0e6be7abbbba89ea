"""A run of training: the model folder, its checks before training starts, and the listeners."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phrasetool.disk.folders import CONFIG, check_folder, check_space, restore
from phrasetool.disk.scratch import remove_dead
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.watch import ItemTick, refuse

if TYPE_CHECKING:
    import torch

    from phrasetool.models.saved_model import SavedModel


@dataclass(frozen=True)
class TrainingRun:
    """How any model is trained, apart from its data and settings.

    Attributes:
        folder: the model folder; gets `training.jsonl` and a checkpoint on the way, which goes when all is done.
        device: where to train; CPU by default.
        resume: go on from the checkpoint in `folder`: an interrupted run ends with the weights of one that was not.
        overwrite: a finished model, or an unfinished training, in `folder` may be replaced.
        force: save a model that is no better than guessing, too.
        record: more to remember in `config.json`, under `training`.
        warn: told of what was done by force.
        on_report: called after every epoch or iteration, with what the log says of it.
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
        """See `check_model_folder`."""
        check_model_folder(self.folder, resume=self.resume, overwrite=self.overwrite)

    def check_space(self, size: int) -> None:
        """See `phrasetool.disk.folders.check_space`."""
        check_space(self.folder, size)

    def refuse(self, error: PhraseToolError) -> None:
        """See `phrasetool.watch.refuse`."""
        refuse(error, self.force, self.warn)

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


# What an interrupted training leaves.
CHECKPOINT = "checkpoint.safetensors"
# The beginning of the names that it has while it is written.
UNFINISHED_CHECKPOINT = ".checkpoint-"


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
            raise ModelError(f"{path}: the training is finished, there is nothing to resume", remedy="train anew")
        raise ModelError(f"{path / CHECKPOINT}: no checkpoint to resume from", remedy="train without a checkpoint")
    if resume or overwrite:
        return
    if begun:
        raise ModelError(f"{path}: there is an unfinished training already", remedy="resume or replace a training")
    if finished:
        raise ModelError(f"{path}: there is a finished model already", remedy="overwrite the model")
