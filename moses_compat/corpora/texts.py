"""Monolingual texts in files: one a line, words between spaces, perhaps with Moses' escapes, none empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.vocabulary import unescape


def read_texts(
    path: str, progress: Callable[[int, int], None] = lambda position, texts: None, as_written: bool = False
) -> tuple[Phrases, Symbols]:
    """Read texts and the words they are made of, escapes undone.

    Args:
        path: the file, compressed or not; `-` for standard input.
        progress: called with the bytes consumed and the texts read so far.
        as_written: leave the escapes in the words.

    Returns:
        The texts in ids of the symbols, and the symbols.

    Raises:
        DataError: the file cannot be read or holds nothing, or a line is empty.
    """
    symbols = Symbols()
    parts: list[Phrases] = []
    read = 0
    with Input(path) as file:
        for block in file.whole_lines():
            part = symbols.read_lines(unescape(block) if b"&" in block and not as_written else block)
            if not part.lengths.all():
                line = read + int(np.argmin(part.lengths)) + 1
                raise DataError(file.name, "the line is empty; leave out lines without a word", line)
            parts.append(part)
            read += len(part)
            progress(file.position(), read)
        if not read:
            raise DataError(file.name, "there is no text in it")
    return Phrases.concatenate(parts), symbols
