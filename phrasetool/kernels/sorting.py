"""Multikey quicksort for strings of integers (Bentley and Sedgewick 1997).

A string is a run of letters in one array; only the array of string numbers is permuted, the letters are not moved.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel, inner_kernel

# Maximum number of strings for which insertion sort is faster than partitioning.
_FEW = 12
# The largest of the three parts is pushed first, so the stack holds about three parts for each halving.
_STACK = 256


@exact_kernel
def sort_strings(
    letters: npt.NDArray[np.unsignedinteger],
    width: int,
    strings: npt.NDArray[np.signedinteger],
    low: int,
    high: int,
    depth: int,
    deepest: int,
    ends: bool,
) -> None:
    """Sort strings[low:high].

    Args:
        letters: unsigned, the letters of all strings.
        width: string s begins at letters[s * width].
        strings: the numbers of the strings; permuted in place.
        low, high: range of `strings` to sort.
        depth: number of leading letters that these strings have in common.
        deepest: number of letters that are compared.
        ends: whether a letter 0 ends a string; whatever follows it is ignored.
    """
    if high - low <= _FEW:
        _insert(letters, width, strings, low, high, depth, deepest, ends)
        return
    cache = np.empty(high - low, letters.dtype)
    stack = np.empty((_STACK, 3), np.int64)
    loaded = np.zeros(_STACK, np.bool_)
    parts = np.empty((3, 3), np.int64)
    base = low
    stack[0, 0], stack[0, 1], stack[0, 2] = low, high, depth
    height = 1
    while height > 0:
        height -= 1
        low, high, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        if high - low <= _FEW:
            _insert(letters, width, strings, low, high, depth, deepest, ends)
            continue
        if not loaded[height]:
            for i in range(low, high):
                cache[i - base] = letters[strings[i] * width + depth]
        pivot, less, greater = _partition(cache, base, strings, low, high)
        parts[0, 0], parts[0, 1], parts[0, 2] = low, less, depth
        parts[1, 0], parts[1, 1], parts[1, 2] = greater, high, depth
        # Strings that equal the pivot differ, if at all, in later letters.
        finished = depth + 1 == deepest or (ends and pivot == 0)
        parts[2, 0], parts[2, 1], parts[2, 2] = less, less if finished else greater, depth + 1
        for _ in range(3):
            largest = 0
            for k in range(1, 3):
                if parts[k, 1] - parts[k, 0] > parts[largest, 1] - parts[largest, 0]:
                    largest = k
            if parts[largest, 1] - parts[largest, 0] > 1:
                stack[height] = parts[largest]
                loaded[height] = parts[largest, 2] == depth
                height += 1
            parts[largest, 1] = parts[largest, 0]


@inner_kernel
def _partition(
    cache: npt.NDArray[np.unsignedinteger], base: int, strings: npt.NDArray[np.signedinteger], low: int, high: int
) -> tuple[int, int, int]:
    """Partition strings[low:high] by their letters, cache[low - base:high - base]; the pivot is the median of three.

    Returns:
        The pivot; the start of the strings whose letter equals it; and the start of those with a greater letter.
    """
    a, b, c = cache[low - base], cache[(low + high) // 2 - base], cache[high - 1 - base]
    pivot = max(min(a, b), min(max(a, b), c))
    less, i, greater = low, low, high
    while i < greater:
        letter, string = cache[i - base], strings[i]
        if letter < pivot:
            cache[i - base], strings[i] = cache[less - base], strings[less]
            cache[less - base], strings[less] = letter, string
            less += 1
            i += 1
        elif letter > pivot:
            greater -= 1
            cache[i - base], strings[i] = cache[greater - base], strings[greater]
            cache[greater - base], strings[greater] = letter, string
        else:
            i += 1
    return pivot, less, greater


@exact_kernel
def _insert(
    letters: npt.NDArray[np.unsignedinteger],
    width: int,
    strings: npt.NDArray[np.signedinteger],
    low: int,
    high: int,
    depth: int,
    deepest: int,
    ends: bool,
) -> None:
    """Sort a few strings by insertion."""
    for i in range(low + 1, high):
        moving = strings[i]
        k = i
        while k > low:
            a, b = strings[k - 1] * width, moving * width
            d = depth
            while d < deepest and letters[a + d] == letters[b + d] and not (ends and letters[a + d] == 0):
                d += 1
            if d == deepest or letters[a + d] <= letters[b + d]:
                break
            strings[k] = strings[k - 1]
            k -= 1
        strings[k] = moving
