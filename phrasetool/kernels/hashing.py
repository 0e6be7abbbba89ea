"""Hash functions, and hash tables of keys and their numbers: integers, ragged integers, ragged bytes.

Bytes are hashed by FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), a byte at a time, so that a hash may go on
where another ended.  Integers are multiplied by the golden ratio in 64 bits, which spreads neighbouring keys over the
top bits (Knuth, The Art of Computer Programming 3, section 6.4).

The tables use open addressing with linear probing.  A table of integers holds the keys themselves, and the values that
belong to them stand at the same places of other arrays.  Of ragged keys the table holds the numbers, -1 where a slot is
free; their texts are two arrays, as in `Phrases`.  Every `find_...` returns a slot: the key's, or the free one where it
belongs.  There must be a free one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.bytes import same_bytes
from phrasetool.kernels.jit import borrowing_kernel, inner_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array

FNV_BASIS = np.uint64(14695981039346656037)
FNV_PRIME = np.uint64(1099511628211)
_FNV_BASIS_32 = np.uint32(2166136261)
_FNV_PRIME_32 = np.uint32(16777619)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_HALF = np.uint64(32)
FREE = -1
# In a table of integers, whose keys are not 0.
NO_KEY = np.uint64(0)


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


def make_slots(count: int) -> Int32Array:
    """Free slots for `count` ragged keys: a power of two, at least twice as many.

    Raises:
        ValueError: their numbers are beyond 32 bits.
    """
    if count > np.iinfo(np.int32).max:
        raise ValueError(f"{count} keys cannot be numbered in 32 bits")
    return np.full(1 << max(2 * count, 2).bit_length(), FREE, np.int32)


@inner_kernel
def find_key(keys: npt.NDArray[np.uint64], key: int) -> int:
    """The slot of an integer.

    Args:
        keys: uint64, shape (P,), the table, 0 where a slot is free; P is at most 2^32.
        key: not 0.
    """
    slot = home(key, len(keys))
    while True:
        entry = keys[slot]
        if entry == NO_KEY or entry == key:
            break
        slot += 1
        if slot == len(keys):
            slot = 0
    return slot


@inner_kernel
def find_ids(ids: Int32Array, start: int, end: int, known: Int32Array, offsets: Int64Array, slots: Int32Array) -> int:
    """The slot of the sequence ids[start:end].

    Args:
        known, offsets: the sequences that the slots number, as in `Phrases`.
        slots: int32, shape (P,), P a power of two.
    """
    size = end - start
    h = np.uint64(size)
    for i in range(start, end):
        h = mix(h, ids[i])
    mask = len(slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while True:
        number = slots[slot]
        if number < 0:
            break
        first = offsets[number]
        if offsets[number + 1] - first == size:
            k = 0
            while k < size and known[first + k] == ids[start + k]:
                k += 1
            if k == size:
                break
        slot = (slot + 1) & mask
    return slot


@inner_kernel
def find_hashed_bytes(
    text: ByteArray, start: int, end: int, h: int, known: ByteArray, offsets: Int64Array, slots: Int32Array
) -> int:
    """The slot of the word text[start:end].

    Args:
        h: its hash by FNV-1a.
        known, offsets: the words that the slots number, one after another, and where each begins.
        slots: int32, shape (P,), P a power of two.
    """
    mask = len(slots) - 1
    slot = np.int64((h ^ (h >> _HALF)) & np.uint64(mask))
    size = end - start
    while True:
        number = slots[slot]
        if number < 0:
            break
        first = offsets[number]
        if offsets[number + 1] - first == size and same_bytes(known, first, text, start, size):
            break
        slot = (slot + 1) & mask
    return slot


@borrowing_kernel
def find_bytes(text: ByteArray, start: int, end: int, known: ByteArray, offsets: Int64Array, slots: Int32Array) -> int:
    """As `find_hashed_bytes`, which saves a reader that walks over the word anyway a second walk."""
    return find_hashed_bytes(text, start, end, fnv_bytes(text, start, end), known, offsets, slots)
