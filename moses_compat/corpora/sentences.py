"""A monolingual corpus in files: one sentence a line, words between spaces.  Lines may be empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moses_compat.files.streams import Input, display_name
from phrasetool.errors import DataError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols

# lmplz takes these for spaces (lm/builder/corpus_count.cc).
_BLANKS = bytes.maketrans(b"\r\0", b"  ")


def _translated(text: bytes) -> bytes:
    return text.translate(_BLANKS) if b"\r" in text or b"\0" in text else text


def line_blocks(path: str) -> Iterator[bytes]:
    """The text of a file in blocks of whole lines, each line with its line feed, blanks other than tabs as spaces.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: the file cannot be read.
    """
    with Input(path) as file:
        for text in file.whole_lines():
            yield _translated(text if text.endswith(b"\n") else text + b"\n")


def read_corpus(paths: Sequence[str], symbols: Symbols, forbidden: Sequence[bytes] = ()) -> Phrases:
    """Read the sentences of some files, one after another; new words are added to the symbols.

    Args:
        paths: files, compressed or not; `-` for standard input.
        symbols: words as ids.
        forbidden: words that may not occur.

    Raises:
        DataError: a file cannot be read, or a forbidden word occurs.
    """
    parts: list[Phrases] = []
    ids = np.array([symbols.add(word) for word in forbidden], np.int32)
    for path in paths:
        lines = 0
        for text in line_blocks(path):
            sentences = symbols.read_lines(text)
            if len(places := np.flatnonzero(np.isin(sentences.words, ids))):
                line = int(np.searchsorted(sentences.offsets, places[0], "right"))
                word = symbols.words[sentences.words[places[0]]].decode(errors="replace")
                message = f"the word {word} is the language model's own and may not occur in a corpus"
                raise DataError(display_name(path), message, lines + line)
            parts.append(sentences)
            lines += len(sentences)
    return Phrases.concatenate(parts)
