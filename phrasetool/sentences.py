"""Sentences as numbers of their distinct words, for models that read text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.vocabulary import unescape


def read_words(sentences: Sequence[str | bytes]) -> tuple[Phrases, list[bytes]]:
    """Sentences in numbers of their distinct words, and these words without Moses' escapes.

    Args:
        sentences: words between spaces; text that is not UTF-8 as bytes, or with surrogates.
    """
    if isinstance(sentences, str | bytes):
        raise TypeError("expected several sentences, found one")
    lines = [line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape") for line in sentences]
    sizes = np.array([len(line) for line in lines], np.int64)
    ends = np.cumsum(sizes)
    symbols = Symbols()
    text = np.frombuffer(b"".join(lines), np.uint8)
    read = symbols.read_fields(text, ends - sizes, ends)
    plain: dict[bytes, int] = {}
    ids = [plain.setdefault(unescape(word) if b"&" in word else word, len(plain)) for word in symbols.words]
    return Phrases(read.offsets, np.array(ids, np.int32)[read.words] if ids else read.words), list(plain)


def sentence_lengths(sentences: Sequence[str | bytes]) -> Int64Array:
    """Words of each of N sentences, int64, shape (N,)."""
    return read_words(sentences)[0].lengths
