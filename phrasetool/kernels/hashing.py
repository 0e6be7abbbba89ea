"""Hash functions.

Bytes are hashed by FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), a byte at a time, so that a hash may go on
where another ended.  Integers are multiplied by the golden ratio in 64 bits, which spreads neighbouring keys over the
top bits (Knuth, The Art of Computer Programming 3, section 6.4).
"""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import inner_kernel
from phrasetool.phrases import ByteArray

FNV_BASIS = np.uint64(14695981039346656037)
FNV_PRIME = np.uint64(1099511628211)
_FNV_BASIS_32 = np.uint32(2166136261)
_FNV_PRIME_32 = np.uint32(16777619)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_HALF = np.uint64(32)


@inner_kernel
def fnv(h: int, byte: int) -> int:
    """FNV-1a of one more byte, 64 bits."""
    return (h ^ np.uint64(byte)) * FNV_PRIME


@inner_kernel
def fnv_bytes(text: ByteArray, start: int, end: int) -> int:
    """FNV-1a of text[start:end], 64 bits."""
    h = FNV_BASIS
    for i in range(start, end):
        h = fnv(h, text[i])
    return h


@inner_kernel
def fnv_bytes_32(text: ByteArray, start: int, end: int) -> int:
    """FNV-1a of text[start:end], 32 bits."""
    h = _FNV_BASIS_32
    for i in range(start, end):
        h = np.uint32((h ^ np.uint32(text[i])) * _FNV_PRIME_32)
    return h


@inner_kernel
def mix(h: int, value: int) -> int:
    """A hash of one more integer, 64 bits."""
    h = (h ^ np.uint64(value)) * GOLDEN
    return h ^ (h >> _FOLD)


@inner_kernel
def home(key: int, size: int) -> int:
    """Where to look first for a key in a table of `size` slots, at most 2^32: its hash, scaled from 32 bits."""
    return np.int64((((np.uint64(key) * GOLDEN) >> _HALF) * np.uint64(size)) >> _HALF)
