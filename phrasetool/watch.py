"""Who follows long work: told how far it is, and what happens on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from phrasetool.errors import PhraseToolError

# Called with the bytes of a file consumed and the entries done so far.
FileProgress = Callable[[int, int], None]
# Called with how many more things are done.
ItemTick = Callable[[int], None]
# Called with what is being read, the bytes of its file consumed and the entries seen.
ReadingProgress = Callable[[str, int, int], None]


class Watch:
    """Someone who looks away.  The command line shows bars and lines instead; see `phrasetool_cli`."""

    def say(self, message: str) -> None:
        """Something happened that may interest."""

    def warn(self, message: str) -> None:
        """Something happened that should be known in any case."""

    @contextlib.contextmanager
    def file(self, label: str, size: int) -> Iterator[FileProgress]:
        """A file is gone through.

        Args:
            label: what is being done.
            size: bytes of the file, 0 if unknown.
        """
        yield lambda position, entries: None

    @contextlib.contextmanager
    def items(self, label: str, total: int, unit: str) -> Iterator[ItemTick]:
        """A known number of things is gone through.

        Args:
            label: what is being done.
            total: how many there are.
            unit: what they are, in the singular.
        """
        yield lambda count: None

    @contextlib.contextmanager
    def reading(self, paths: Mapping[str, str]) -> Iterator[ReadingProgress]:
        """Files are read, one after another.

        Args:
            paths: label -> file.
        """
        yield lambda label, position, entries: None


NOBODY = Watch()


def refuse(error: PhraseToolError, force: bool, warn: Callable[[str], None]) -> None:
    """What becomes of input that can be read and makes no sense.

    Args:
        error: what a check found.
        force: whether to go on all the same.
        warn: told of it then.

    Raises:
        PhraseToolError: the error, unless it was to go on.
    """
    if not force:
        raise error
    warn(str(error))
