"""Fuzzing targets: valid inputs, and a function to run on mutated ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from phrasetool.errors import PhraseToolError


class Wrong(Exception):
    """Data was changed, lost or miscounted."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes:
        name: name of the target.
        seeds: valid inputs: lines without line ends, or whole files.
        run: processes a file; raises `Wrong`, or any exception other than a `PhraseToolError`, for a defect.  Returns
            the number of refused lines, if lines are checked one by one.
        words: keywords of the format.
        lines: number of inputs that form one file as its lines; 0: an input is a file.
        head: first line of a file of lines, before the inputs.
    """

    name: str
    seeds: Sequence[bytes]
    run: Callable[[bytes], int | None]
    words: Sequence[bytes] = ()
    lines: int = 0
    head: bytes = b""

    def attempt(self, data: bytes) -> int:
        """Process a file; return the number of its refused inputs, which are all of them if the file is refused.

        Raises:
            Exception: any defect.
        """
        try:
            return self.run(data) or 0
        except PhraseToolError as error:
            if not str(error):
                raise Wrong("an error without a message") from error
            return self.lines or 1


# Folder for files of this process, in memory if possible.
_PLACE = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp"))


def scratch(name: str) -> Path:
    """Return the path of a file or folder that is private to this process."""
    folder = _PLACE / f"phrasetool-fuzz-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    return folder / name


def written(name: str, data: bytes) -> str:
    """Write bytes to a file; return its path."""
    path = scratch(name)
    path.write_bytes(data)
    return str(path)
