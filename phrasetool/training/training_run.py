"""A run of training: where its model is kept, and who follows it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phrasetool.disk.scratch import remove_dead
from phrasetool.disk.writable import check_space
from phrasetool.errors import PhraseToolError
from phrasetool.models.folders import CHECKPOINT, UNFINISHED_CHECKPOINT, check_model_folder
from phrasetool.watch import ItemTick, refuse

if TYPE_CHECKING:
    import torch

    from phrasetool.models.storage import Model


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
        """See `phrasetool.disk.writable.check_space`."""
        check_space(self.folder, size)

    def refuse(self, error: PhraseToolError) -> None:
        """See `phrasetool.watch.refuse`."""
        refuse(error, self.force, self.warn)

    def save(self, model: Model) -> None:
        """Save what was trained, in the place of the checkpoint.

        Raises:
            PhraseToolError: the folder cannot be written.
        """
        from phrasetool.models.storage import save_model

        save_model(model, self.folder)
        self.forget_checkpoint()

    def forget_checkpoint(self) -> None:
        """Remove the checkpoint of a training whose model is saved.

        One that a killed run was writing goes, too: who resumes after the last epoch writes none.
        """
        with contextlib.suppress(FileNotFoundError):
            (self.folder / CHECKPOINT).unlink()
        remove_dead(self.folder, UNFINISHED_CHECKPOINT)
