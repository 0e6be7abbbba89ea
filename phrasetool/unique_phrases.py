"""Find equal phrases, so that each distinct one is encoded once."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.hashing import find_ids, make_slots
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases


@exact_kernel
def _number_distinct(
    offsets: Int64Array, words: Int32Array, slots: Int32Array, numbers: Int64Array, firsts: Int64Array
) -> int:
    """numbers[i] = which distinct phrase i is, firsts[d] = where d occurs first; return how many there are.

    A slot holds the first occurrence.
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
    """The phrases `chosen`, one behind the other; their offsets into `to`."""
    place = 0
    to[0] = 0
    for i in range(len(chosen)):
        for k in range(offsets[chosen[i]], offsets[chosen[i] + 1]):
            gathered[place] = words[k]
            place += 1
        to[i + 1] = place


def distinct_phrases(phrases: Phrases) -> tuple[Int64Array, Phrases]:
    """The distinct phrases in order of first occurrence.

    Returns:
        Which of them each phrase is, int64, shape (N,), and they.
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
