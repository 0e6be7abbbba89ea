"""A limit for the lines of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phrasetool.errors import DataError

# What has a longer line is no text; without a limit, it would be held as a whole.
LONGEST_TEXT_LINE = 1 << 26


def limited_lines(name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same pieces of a text, as long as no line is too long.

    Args:
        name: of the text, in messages.
        pieces: one after another; where they end has nothing to do with lines.

    Raises:
        DataError: a line that spans several pieces has more than `LONGEST_TEXT_LINE` bytes.
    """
    lines = line = 0
    for piece in pieces:
        feed = piece.rfind(b"\n")
        line = len(piece) - feed - 1 if feed >= 0 else line + len(piece)
        if line > LONGEST_TEXT_LINE:
            message = f"the line has more than {LONGEST_TEXT_LINE:,} bytes; expected text, a sentence a line"
            raise DataError(name, message, lines + piece.count(b"\n") + 1)
        lines += piece.count(b"\n")
        yield piece
