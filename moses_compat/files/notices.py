"""What is noticed about a file while it is read, for whoever wants to say it."""

from __future__ import annotations

from collections.abc import Callable

# Each is called with a message, such as `train.de: a byte order mark at its start was left out`.
listeners: list[Callable[[str], None]] = []

# Device and inode of each pipe that was read under its name, where somebody wants it to be read but once.  A second
# reader gets what the first left, or nothing.
read_pipes: set[tuple[int, int]] | None = None

# Files that were being written when the reader of a pipe went away, and that were dropped for that.
abandoned: list[str] = []


def read_pipes_once() -> None:
    """From now on, each pipe can be read once."""
    global read_pipes
    read_pipes = set()


def notice(message: str) -> None:
    """Tell whoever listens."""
    for listener in listeners:
        listener(message)
