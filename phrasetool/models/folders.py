"""What is checked of a model folder before a training starts."""

from __future__ import annotations

import os
from pathlib import Path

from phrasetool.disk.staged_folder import CONFIG, restore
from phrasetool.disk.writable import check_folder
from phrasetool.errors import ModelError, PhraseToolError, reason

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
