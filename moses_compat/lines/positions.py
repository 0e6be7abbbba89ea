"""Positions in sentences, the numbers of word alignments: read and written."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray

_ZERO = np.uint8(ord("0"))
_NINE = np.uint8(ord("9"))
# No sentence is that long; a larger number is damage.
MAX_POSITION = 32767


@exact_kernel
def read_position(text: ByteArray, i: int, end: int) -> tuple[int, int]:
    """The number at text[i:end], -1 if there is none, and where it ends."""
    value = -1
    while i < end and _ZERO <= text[i] <= _NINE:
        value = min(max(value, 0) * 10 + int(text[i]) - int(_ZERO), MAX_POSITION + 1)
        i += 1
    return value, i


@exact_kernel
def write_position(out: ByteArray, place: int, value: int) -> int:
    """Write a number from 0; return the place after it."""
    divisor = 1
    while value // divisor > 9:
        divisor *= 10
    while divisor > 0:
        out[place] = _ZERO + np.uint8(value // divisor % 10)
        place += 1
        divisor //= 10
    return place
