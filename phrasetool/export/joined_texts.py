"""Phrases as text, many at a time: words with a space between, and lines of two fields."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phrasetool.kernels.bytes import LF, SPACE, TAB, copy_bytes
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array, Phrases


class Texts(NamedTuple):
    """Texts one after another.

    Attributes:
        text: uint8, all of them.
        offsets: int64, shape (N + 1,), where each begins, and the end.
    """

    text: ByteArray
    offsets: Int64Array


@exact_kernel
def _join(
    phrase_offsets: Int64Array,
    ids: Int32Array,
    words: ByteArray,
    word_offsets: Int64Array,
    offsets: Int64Array,
    out: ByteArray,
) -> None:
    place = 0
    for phrase in range(len(phrase_offsets) - 1):
        for k in range(phrase_offsets[phrase], phrase_offsets[phrase + 1]):
            if k > phrase_offsets[phrase]:
                out[place] = SPACE
                place += 1
            place = copy_bytes(words, word_offsets[ids[k]], word_offsets[ids[k] + 1], out, place)
        offsets[phrase + 1] = place


def joined(phrases: Phrases, words: Texts) -> Texts:
    """The words of phrases with a space between them.

    Raises:
        ValueError: a phrase has a word that there is no text of.
    """
    count = len(words.offsets) - 1
    if len(phrases.words) and not 0 <= phrases.words.min() <= phrases.words.max() < count:
        raise ValueError(f"a word is not one of {count}")
    size = int(np.diff(words.offsets)[phrases.words].sum() + np.maximum(phrases.lengths - 1, 0).sum())
    offsets, out = np.zeros(len(phrases) + 1, np.int64), np.empty(size, np.uint8)
    _join(phrases.offsets, phrases.words, words.text, words.offsets, offsets, out)
    return Texts(out, offsets)


@exact_kernel
def _put_lines(
    keys: ByteArray, key_offsets: Int64Array, values: ByteArray, value_offsets: Int64Array, rows: Int64Array,
    out: ByteArray,
) -> None:  # fmt: skip
    place = 0
    for row in range(len(rows)):
        place = copy_bytes(keys, key_offsets[row], key_offsets[row + 1], out, place)
        out[place] = TAB
        first, last = value_offsets[rows[row]], value_offsets[rows[row] + 1]
        place = copy_bytes(values, first, last, out, place + 1)
        out[place] = LF
        place += 1


def lines_of(keys: Texts, values: Texts, rows: Int64Array) -> ByteArray:
    """A line for each key: the key, a tab, its value, a line feed.

    Args:
        keys: R texts.
        values: V texts.
        rows: int64, shape (R,), the value of each key.

    Raises:
        ValueError: there is no such value, or the numbers of keys and rows differ.
    """
    count = len(values.offsets) - 1
    if len(rows) != len(keys.offsets) - 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < count):
        raise ValueError(f"{len(keys.offsets) - 1} keys and {len(rows)} rows of {count} values")
    size = len(keys.text) + int(np.diff(values.offsets)[rows].sum()) + 2 * len(rows)
    out = np.empty(size, np.uint8)
    _put_lines(*keys, *values, rows, out)
    return out
