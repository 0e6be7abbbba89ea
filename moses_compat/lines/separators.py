"""The smallest parts of a table's text: lines, fields, tokens, groups.

As Moses' text loader does, fields are split at the three bytes `|||` wherever they stand, and tokens at runs of spaces
and tabs.
"""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

LF = np.uint8(10)
CR = np.uint8(13)
SPACE = np.uint8(32)
PIPE = np.uint8(ord("|"))
_TAB = np.uint8(9)


@exact_kernel
def is_blank(c: int) -> bool:
    """Whether a byte separates tokens."""
    return c == SPACE or c == _TAB


@exact_kernel
def find_separator(text: ByteArray, start: int, end: int) -> int:
    """The position of the first `|||` in text[start:end], or -1."""
    i = start
    last = end - 2
    while i < last:
        if text[i] == PIPE and text[i + 1] == PIPE and text[i + 2] == PIPE:
            return i
        i += 1
    return -1


@exact_kernel
def same_tokens(text: ByteArray, a: int, a_end: int, b: int, b_end: int) -> bool:
    """Whether text[a:a_end] and text[b:b_end] hold the same tokens."""
    # Almost always the bytes tell: all equal, or the first difference is between two letters.
    shorter = min(a_end - a, b_end - b)
    k = 0
    while k < shorter and text[a + k] == text[b + k]:
        k += 1
    if k == a_end - a and k == b_end - b:
        return True
    if k < shorter and not is_blank(text[a + k]) and not is_blank(text[b + k]):
        return False
    while True:
        while a < a_end and is_blank(text[a]):
            a += 1
        while b < b_end and is_blank(text[b]):
            b += 1
        if a == a_end or b == b_end:
            return a == a_end and b == b_end
        while a < a_end and b < b_end and not is_blank(text[a]) and text[a] == text[b]:
            a += 1
            b += 1
        if (a < a_end and not is_blank(text[a])) or (b < b_end and not is_blank(text[b])):
            return False


def line_offsets_of(text: ByteArray) -> Int64Array:
    """Where each line begins, and the end of the text; int64, shape (N + 1,)."""
    ends = np.flatnonzero(text == LF) + 1
    if len(text) and (not len(ends) or ends[-1] != len(text)):
        ends = np.append(ends, len(text))
    return np.concatenate([np.zeros(1, np.int64), ends])
