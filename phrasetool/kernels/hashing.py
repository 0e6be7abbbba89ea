"""Hash functions, and hash tables for integers, sequences of integers, and byte strings.

Bytes are hashed by FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), one byte at a time, so that a hash can be
continued.  Integers are multiplied by the golden ratio in 64 bits, which spreads neighbouring keys over the top bits
(Knuth, The Art of Computer Programming 3, section 6.4).

The tables use open addressing with linear probing.  A table of integers contains the keys themselves; their values are
at the same indices of other arrays.  A table of sequences or byte strings contains the numbers of the keys, -1 in free
slots; the keys are stored in two arrays, as in `Phrases`.  Every `find_...` returns a slot: that of the key, or the
free slot where it belongs.  The table must have a free slot.
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
# Free slot in a table of integers, whose keys are not 0.
NO_KEY = np.uint64(0)


@inner_kernel
def fnv(h: int, byte: int) -> int:
    """Update a 64-bit FNV-1a hash with one byte."""
    return (h ^ np.uint64(byte)) * FNV_PRIME


@inner_kernel
def fnv_bytes(text: ByteArray, start: int, end: int) -> int:
    """Return the 64-bit FNV-1a hash of text[start:end]."""
    h = FNV_BASIS
    for i in range(start, end):
        h = fnv(h, text[i])
    return h


@inner_kernel
def fnv_bytes_32(text: ByteArray, start: int, end: int) -> int:
    """Return the 32-bit FNV-1a hash of text[start:end]."""
    h = _FNV_BASIS_32
    for i in range(start, end):
        h = np.uint32((h ^ np.uint32(text[i])) * _FNV_PRIME_32)
    return h


@inner_kernel
def mix(h: int, value: int) -> int:
    """Update a 64-bit hash with one integer."""
    h = (h ^ np.uint64(value)) * GOLDEN
    return h ^ (h >> _FOLD)


@inner_kernel
def home(key: int, size: int) -> int:
    """Return the first slot to probe for a key in a table of `size` (at most 2^32) slots: its scaled 32-bit hash."""
    return np.int64((((np.uint64(key) * GOLDEN) >> _HALF) * np.uint64(size)) >> _HALF)


def make_slots(count: int) -> Int32Array:
    """Return free slots for `count` sequences or byte strings: a power of two, more than twice as many.

    Raises:
        ValueError: the keys cannot be numbered in 32 bits.
    """
    if count > np.iinfo(np.int32).max:
        raise ValueError(f"{count} keys cannot be numbered in 32 bits")
    return np.full(1 << max(2 * count, 2).bit_length(), FREE, np.int32)


@inner_kernel
def find_key(keys: npt.NDArray[np.uint64], key: int) -> int:
    """Return the slot of an integer.

    Args:
        keys: uint64, shape (P,), the table, with 0 in free slots; P is at most 2^32.
        key: the integer, not 0.
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
    """Return the slot of the sequence ids[start:end].

    Args:
        known, offsets: the sequences in the table, as in `Phrases`.
        slots: int32, shape (P,), the numbers of the sequences; P is a power of two.
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
    """Return the slot of the word text[start:end].

    Args:
        h: 64-bit FNV-1a hash of the word.
        known, offsets: the concatenated words of the table, and the start of each word.
        slots: int32, shape (P,), the numbers of the words; P is a power of two.
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
    """Return the slot of a word like `find_hashed_bytes`, but compute the hash in a separate pass over the word."""
    return find_hashed_bytes(text, start, end, fnv_bytes(text, start, end), known, offsets, slots)
