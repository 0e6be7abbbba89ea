"""What a target is: good inputs, and what is done with inputs made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from phrasetool.errors import PhraseToolError


class Wrong(Exception):
    """Something was read otherwise than it was written."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes:
        name: of it.
        seeds: good inputs: lines, without their ends, or whole files.
        run: tries a file; raises `Wrong`, or anything but an error of the project's own, if something is wrong.
            Returns how many of its lines were refused by name, if it is of lines that are judged one by one.
        words: of the format.
        lines: how many inputs are lines of one file; 0: an input is a file.
        head: of a file of lines, what stands before them.
    """

    name: str
    seeds: Sequence[bytes]
    run: Callable[[bytes], int | None]
    words: Sequence[bytes] = ()
    lines: int = 0
    head: bytes = b""

    def attempt(self, data: bytes) -> int:
        """Try a file; how many of its inputs were refused: lines, or all of it.

        Raises:
            Exception: whatever is wrong.
        """
        try:
            return self.run(data) or 0
        except PhraseToolError as error:
            if not str(error):
                raise Wrong("an error without a message") from error
            return self.lines or 1


# Files of this process, in memory where that can be.
_PLACE = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp"))


def scratch(name: str) -> Path:
    """The path of a file, or a folder, for this process alone."""
    folder = _PLACE / f"phrasetool-fuzz-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    return folder / name


def written(name: str, data: bytes) -> str:
    """A file that holds these bytes; its path."""
    path = scratch(name)
    path.write_bytes(data)
    return str(path)
