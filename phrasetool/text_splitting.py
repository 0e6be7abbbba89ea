"""Splitting of text into lines and words, as in Moses.

A word ends at a space or a tab, and a line at a line feed; a carriage return before the line feed belongs to the line
end.  Python's own `split()`, `splitlines()` and `strip()` also split at other characters (vertical tab, form feed, 0x1C
and, in a `str`, U+0085, U+00A0, U+2028, U+3000 and others), which are parts of words for Moses, the aligner and the
decoder.
"""

from __future__ import annotations

from typing import AnyStr


def split_words(line: AnyStr) -> list[AnyStr]:
    """Return the words of a line.

    Args:
        line: words separated by spaces and tabs, without a line end.
    """
    # Fast path: most lines have single spaces between words and no tabs.
    if isinstance(line, bytes):
        words = line.strip(b" \t").split(b" ")
        if b"" in words or b"\t" in line:
            return [word for word in line.replace(b"\t", b" ").split(b" ") if word]
        return words
    words = line.strip(" \t").split(" ")
    if "" in words or "\t" in line:
        return [word for word in line.replace("\t", " ").split(" ") if word]
    return words


def single_spaced(line: AnyStr) -> AnyStr:
    """Return the words of a line, joined by single spaces."""
    return (b" " if isinstance(line, bytes) else " ").join(split_words(line))


def split_lines(text: AnyStr) -> list[AnyStr]:
    """Return the lines of a text without their line ends; the last one may lack its line feed."""
    feed, end = (b"\n", b"\r") if isinstance(text, bytes) else ("\n", "\r")
    lines = text.split(feed)
    return [line.removesuffix(end) for line in (lines if lines[-1] else lines[:-1])]


def lines_with_ends(text: AnyStr) -> list[AnyStr]:
    """Return the lines of a text with their line ends, byte for byte; the last one may lack its line feed."""
    feed = b"\n" if isinstance(text, bytes) else "\n"
    lines = text.split(feed)
    last = lines.pop()
    return [line + feed for line in lines] + ([last] if last else [])


def tabs_as_spaces(text: bytes) -> list[bytes]:
    """Return the lines of a text with tabs replaced by spaces, without line ends and outer spaces."""
    return [line.strip(b" ") for line in split_lines(text.replace(b"\t", b" "))]
