"""Progress reporting for long-running work."""

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
    """Default listener; ignores all events.  The command line shows bars and lines instead; see `phrasetool_cli`."""

    def say(self, message: str) -> None:
        """Report an event of interest."""

    def warn(self, message: str) -> None:
        """Report an event that is always shown."""

    @contextlib.contextmanager
    def file(self, label: str, size: int) -> Iterator[FileProgress]:
        """Report progress through a file.

        Args:
            label: what is being done.
            size: bytes of the file, 0 if unknown.
        """
        yield lambda position, entries: None

    @contextlib.contextmanager
    def items(self, label: str, total: int, unit: str, finished: int = 0) -> Iterator[ItemTick]:
        """Report progress through a known number of items.

        Args:
            label: what is being done.
            total: how many there are.
            unit: what they are, in the singular.
            finished: number of items that an interrupted run completed.
        """
        yield lambda count: None

    @contextlib.contextmanager
    def reading(self, paths: Mapping[str, str]) -> Iterator[ReadingProgress]:
        """Report progress through files that are read one after another.

        Args:
            paths: label -> file.
        """
        yield lambda label, position, entries: None


SILENT = Watch()


def raise_or_warn(error: PhraseToolError, force: bool, warn: Callable[[str], None]) -> None:
    """Raise the error of a failed sanity check, or only warn of it.

    Args:
        error: error of the check.
        force: whether to continue anyway.
        warn: called with the message if work continues.

    Raises:
        PhraseToolError: the error, unless forced.
    """
    if not force:
        raise error
    warn(str(error))
