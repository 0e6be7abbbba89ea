"""Find equal phrases, so that each distinct one is encoded once."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases


@exact_kernel
def _number_distinct(
    offsets: Int64Array, words: Int32Array, slots: Int64Array, numbers: Int64Array, firsts: Int64Array
) -> int:
    """numbers[i] = which distinct phrase i is, firsts[d] = where d occurs first; return how many there are."""
    mask = len(slots) - 1
    distinct = 0
    for i in range(len(numbers)):
        start, end = offsets[i], offsets[i + 1]
        h = np.uint64(end - start)
        for k in range(start, end):
            h = (h ^ np.uint64(words[k])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(32)
        place = np.int64(h & np.uint64(mask))
        while True:
            number = slots[place]
            if number < 0:
                slots[place] = distinct
                firsts[distinct] = i
                numbers[i] = distinct
                distinct += 1
                break
            other = offsets[firsts[number]]
            same = offsets[firsts[number] + 1] - other == end - start
            if same:
                for k in range(end - start):
                    if words[other + k] != words[start + k]:
                        same = False
                        break
            if same:
                numbers[i] = number
                break
            place = (place + 1) & mask
    return distinct


def number_distinct(phrases: Phrases) -> tuple[Int64Array, Int64Array]:
    """Number the distinct phrases in order of first occurrence.

    Returns:
        The number of each phrase, shape (N,), and the first occurrence of each distinct phrase, shape (D,).
    """
    numbers = np.empty(len(phrases), np.int64)
    firsts = np.empty(len(phrases), np.int64)
    slots = np.full(1 << (2 * len(phrases) + 1).bit_length(), -1, np.int64)
    count = _number_distinct(phrases.offsets, phrases.words, slots, numbers, firsts)
    return numbers, firsts[:count]
