"""What is noticed about a file while it is read, for whoever wants to say it."""

from __future__ import annotations

from collections.abc import Callable

# Each is called with a message, such as `train.de: a byte order mark at its start was left out`.
listeners: list[Callable[[str], None]] = []


def notice(message: str) -> None:
    """Tell whoever listens."""
    for listener in listeners:
        listener(message)
