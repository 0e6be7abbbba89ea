"""Deduplication of phrases, so that each distinct phrase is encoded only once."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.hashing import find_ids, make_slots
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases


@exact_kernel
def _number_distinct(
    offsets: Int64Array, words: Int32Array, slots: Int32Array, numbers: Int64Array, firsts: Int64Array
) -> int:
    """Set the number of each phrase and the first row of each distinct phrase; return the number of distinct phrases.

    A slot holds the first occurrence of its phrase.
    """
    distinct = 0
    for i in range(len(numbers)):
        slot = find_ids(words, offsets[i], offsets[i + 1], words, offsets, slots)
        if slots[slot] < 0:
            slots[slot] = i
            firsts[distinct] = i
            numbers[i] = distinct
            distinct += 1
        else:
            numbers[i] = numbers[slots[slot]]
    return distinct


@exact_kernel
def _gather(offsets: Int64Array, words: Int32Array, chosen: Int64Array, to: Int64Array, gathered: Int32Array) -> None:
    """Write the words of the `chosen` phrases to `gathered`, and their offsets to `to`."""
    position = 0
    to[0] = 0
    for i in range(len(chosen)):
        for k in range(offsets[chosen[i]], offsets[chosen[i] + 1]):
            gathered[position] = words[k]
            position += 1
        to[i + 1] = position


def distinct_phrases(phrases: Phrases) -> tuple[Int64Array, Phrases]:
    """Return the distinct phrases in order of first occurrence.

    Returns:
        The number of each phrase's distinct phrase, int64, shape (N,), and the distinct phrases.
    """
    numbers, firsts = number_distinct(phrases)
    offsets, words = np.empty(len(firsts) + 1, np.int64), np.empty(phrases.lengths[firsts].sum(), np.int32)
    _gather(phrases.offsets, phrases.words, firsts, offsets, words)
    return numbers, Phrases(offsets, words)


def number_distinct(phrases: Phrases) -> tuple[Int64Array, Int64Array]:
    """Number the distinct phrases in order of first occurrence.

    Returns:
        The number of each phrase, shape (N,), and the first occurrence of each distinct phrase, shape (D,).
    """
    numbers = np.empty(len(phrases), np.int64)
    firsts = np.empty(len(phrases), np.int64)
    count = _number_distinct(phrases.offsets, phrases.words, make_slots(len(phrases)), numbers, firsts)
    return numbers, firsts[:count]
