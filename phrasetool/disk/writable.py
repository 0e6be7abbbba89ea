"""Whether a folder can be written to, before work begins whose result would go there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from phrasetool.errors import PhraseToolError, reason


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
        raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error


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


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
