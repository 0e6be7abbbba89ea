"""Progress reporting for long-running work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from phrasetool.errors import PhraseToolError

# Called with the number of bytes of a file read, and of entries processed, so far.
FileProgress = Callable[[int, int], None]
# Called with the number of items processed since the last call.
ItemTick = Callable[[int], None]
# Called with the label of a file, and the number of bytes and of entries read from it so far.
ReadingProgress = Callable[[str, int, int], None]


class Watch:
    """Default listener, which ignores all events; `phrasetool_cli` has a listener that shows progress."""

    def say(self, message: str) -> None:
        """Report an event of interest."""

    def warn(self, message: str) -> None:
        """Report an event that is always shown."""

    @contextlib.contextmanager
    def file(self, label: str, size: int) -> Iterator[FileProgress]:
        """Report progress through a file.

        Args:
            label: name of the operation.
            size: size of the file in bytes, 0 if unknown.
        """
        yield lambda position, entries: None

    @contextlib.contextmanager
    def items(self, label: str, total: int, unit: str, finished: int = 0) -> Iterator[ItemTick]:
        """Report progress through a known number of items.

        Args:
            label: name of the operation.
            total: number of items.
            unit: noun for an item, in the singular.
            finished: number of items that an interrupted run completed.
        """
        yield lambda count: None

    @contextlib.contextmanager
    def reading(self, paths: Mapping[str, str]) -> Iterator[ReadingProgress]:
        """Report progress through files that are read one after another.

        Args:
            paths: label of each file -> path.
        """
        yield lambda label, position, entries: None


SILENT = Watch()


def raise_or_warn(error: PhraseToolError, force: bool, warn: Callable[[str], None]) -> None:
    """Raise the error of a failed sanity check, or only warn.

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
