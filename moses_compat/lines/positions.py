"""Positions in sentences, the numbers of word alignments."""

from __future__ import annotations

import re

from phrasetool.kernels.bytes import NINE, ZERO
from phrasetool.kernels.jit import borrowing_kernel
from phrasetool.phrases import ByteArray

# The largest position that is read, so that a point fits into 32 bits.
MAX_POSITION = 32767
_POINT = re.compile(rb"[0-9]+-[0-9]+")


def is_point(token: bytes) -> bool:
    """Whether a token is an alignment point that can be read."""
    positions = token.split(b"-") if _POINT.fullmatch(token) else []
    return bool(positions) and all(int(position) <= MAX_POSITION for position in positions)


def point_fault(token: bytes) -> str:
    """Return why a token is no alignment point that can be read: it is none, or a position is beyond the limit."""
    found = token[:40].decode("utf-8", "replace")
    if _POINT.fullmatch(token):
        longest = f"{MAX_POSITION:,}, the largest that is read: sentences have at most {MAX_POSITION + 1:,} words"
        return f"the point {found} has a position beyond {longest}"
    return f"expected alignment points like 0-0 1-2, found {found!r}"


@borrowing_kernel
def read_position(text: ByteArray, i: int, end: int) -> tuple[int, int]:
    """The number at text[i:end], -1 if there is none, and where it ends."""
    value = -1
    while i < end and ZERO <= text[i] <= NINE:
        value = min(max(value, 0) * 10 + int(text[i]) - int(ZERO), MAX_POSITION + 1)
        i += 1
    return value, i
