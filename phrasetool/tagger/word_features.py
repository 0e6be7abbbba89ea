"""What a tagger sees of a word: hashed features, so that every word of every language has some."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import Int32Array

_PREFIXES, _SUFFIXES = 4, 5
# The word itself, its beginnings, its ends, its shape, the language.
FEATURES = 1 + _PREFIXES + _SUFFIXES + 2
# A shape tells no more than so many changes of a kind of characters.
_SHAPE = 8


def shape(word: str) -> str:
    """Kinds of characters, runs as one: `Xx` for `Haus`, `0.0` for `10.25`."""
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else "c" if c.isalpha() else c for c in word
    )
    return re.sub(r"(.)\1+", r"\1", kinds)[:_SHAPE]


def feature_texts(word: str, language: str) -> list[str]:
    """The features of a word as text, `FEATURES` of them; an empty one is none.

    Args:
        word: without escapes.
        language: of the sentence.
    """
    low = word.lower()
    starts = [f"<{low[:size]}" if size < len(low) else "" for size in range(1, _PREFIXES + 1)]
    ends = [f"{low[-size:]}>" if size < len(low) else "" for size in range(1, _SUFFIXES + 1)]
    return [f"={low}", *starts, *ends, f"#{shape(word)}", f"@{language}"]


def feature_rows(words: Sequence[str], language: str, buckets: int) -> Int32Array:
    """Rows of a table of features, int32, shape (N, `FEATURES`); row 0 is that of no feature.

    Args:
        words: N of them; characters that stand for bytes that are no UTF-8 are taken as such.
        language: of their sentences.
        buckets: rows of the table.
    """
    found = np.zeros((len(words), FEATURES), np.int32)
    for row, word in enumerate(words):
        for column, text in enumerate(feature_texts(word, language)):
            if text:
                found[row, column] = zlib.crc32(text.encode("utf-8", "surrogateescape")) % (buckets - 1) + 1
    return found
