"""What is checked of a model folder before a training starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from phrasetool.errors import ModelError, PhraseToolError

# `config.json` is written last: a folder that has one holds a finished model.
_CONFIG = "config.json"


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that could not be made, or not be written to; nothing is left there.

    Raises:
        PhraseToolError: why.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise PhraseToolError(f"{path}: is a file, expected a folder to write to")
    there = _existing(path)
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, f"{there} is no folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot write: {error.strerror}") from error


def check_space(folder: str | os.PathLike[str], needed: int) -> None:
    """Refuse a folder on a disk with too little room.

    Args:
        folder: that will be written to.
        needed: bytes.

    Raises:
        PhraseToolError: how much is free, and how much is needed.
    """
    free = shutil.disk_usage(_existing(Path(folder))).free
    if free < needed:
        raise PhraseToolError(
            f"{folder}: {_megabytes(free)} are free on its disk, but what is written there takes up to "
            f"{_megabytes(needed)}; make room, or name a folder on another disk"
        )


def check_model_folder(
    folder: str | os.PathLike[str], checkpoint: str, *, resume: bool = False, overwrite: bool = False
) -> None:
    """Refuse to train into a folder: one that cannot be written, or that holds what would be lost.

    Args:
        folder: the model folder.
        checkpoint: the file there that an interrupted training leaves.
        resume: whether the training goes on from it.
        overwrite: whether a finished model, or an unfinished training, may be replaced.

    Raises:
        ModelError: there is a finished model, or an unfinished training; or there is nothing to resume.
        PhraseToolError: the folder cannot be written.
    """
    path = Path(folder)
    check_folder(path)
    finished, begun = (path / _CONFIG).exists(), (path / checkpoint).is_file()
    if resume and not begun:
        if finished:
            raise ModelError(f"{path}: the training is finished, there is nothing to resume", remedy="train anew")
        raise ModelError(f"{path / checkpoint}: no checkpoint to resume from", remedy="train without a checkpoint")
    if resume or overwrite:
        return
    if begun:
        raise ModelError(f"{path}: there is an unfinished training already", remedy="resume or replace a training")
    if finished:
        raise ModelError(f"{path}: there is a finished model already", remedy="overwrite the model")


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
