"""Positions in sentences, the numbers of word alignments."""

from __future__ import annotations

from phrasetool.kernels.bytes import NINE, ZERO
from phrasetool.kernels.jit import borrowing_kernel
from phrasetool.phrases import ByteArray

# No sentence is that long; a larger number is damage.
MAX_POSITION = 32767


@borrowing_kernel
def read_position(text: ByteArray, i: int, end: int) -> tuple[int, int]:
    """The number at text[i:end], -1 if there is none, and where it ends."""
    value = -1
    while i < end and ZERO <= text[i] <= NINE:
        value = min(max(value, 0) * 10 + int(text[i]) - int(ZERO), MAX_POSITION + 1)
        i += 1
    return value, i
