"""A sum for each of many phrases, which are known by the hashes of their tokens, as in `pair_hashes`.

A sum of 32 bits takes 18 bytes with its key, one of 64 bits 24, whatever the length of the phrase; three times that for
a moment while room is made.  Two phrases with one hash (of a billion phrases some 0.03 expected) are one to it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.lines.pair_hashes import HashArray, as_key, hash_field
from phrasetool.kernels.bytes import LF
from phrasetool.kernels.hashing import FNV_BASIS
from phrasetool.kernels.interning import NO_KEY, find_key
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

Number = TypeVar("Number", np.int32, np.float64)


@exact_kernel
def _side_keys(text: ByteArray, line_offsets: Int64Array, rows: Int64Array, keys: HashArray) -> None:
    """keys[:, k] = the keys of source and target of line rows[k]; 0 of both if it has no target."""
    for k in range(len(rows)):
        start, end = line_offsets[rows[k]], line_offsets[rows[k] + 1]
        keys[0, k] = keys[1, k] = NO_KEY
        source, i = hash_field(text, start, end, FNV_BASIS)
        if i >= end or text[i] == LF:
            continue
        target, i = hash_field(text, i + 3, end, FNV_BASIS)
        keys[0, k] = as_key(source)
        keys[1, k] = as_key(target)


@exact_kernel
def _add(keys: HashArray, numbers: npt.NDArray[Number], slots: HashArray, sums: npt.NDArray[Number]) -> int:
    """Add numbers to the sums of their keys, for which there is room; return how many keys were new.  0 is no key."""
    new = 0
    for k in range(len(keys)):
        if keys[k] == NO_KEY:
            continue
        slot = find_key(slots, keys[k])
        if slots[slot] == NO_KEY:
            slots[slot] = keys[k]
            new += 1
        sums[slot] += numbers[k]
    return new


@exact_kernel
def _look_up(keys: HashArray, slots: HashArray, sums: npt.NDArray[Number], found: npt.NDArray[Number]) -> None:
    """found[k] = the sum of key k; an empty slot has the sum 0."""
    for k in range(len(keys)):
        found[k] = sums[find_key(slots, keys[k])]


def side_keys(text: ByteArray, line_offsets: Int64Array, rows: Int64Array) -> HashArray:
    """The keys of the source and of the target of some lines.

    Args:
        text: uint8, shape (B,), lines of `source ||| target ||| ...`.
        line_offsets: int64, shape (N + 1,), where each line begins, and the end of the last.
        rows: int64, shape (R,), the lines.

    Returns:
        uint64, shape (2, R), sources first; 0 where a line has no `|||`.
    """
    if text.dtype != np.uint8 or line_offsets.dtype != np.int64 or rows.dtype != np.int64:
        raise ValueError("expected uint8 text, int64 offsets and rows")
    lines = len(line_offsets) - 1
    if len(rows) and (rows.min() < 0 or rows.max() >= lines or line_offsets[-1] > len(text)):
        raise ValueError(f"the rows or offsets do not fit {lines} lines in {len(text)} bytes")
    keys = np.empty((2, len(rows)), np.uint64)
    _side_keys(np.ascontiguousarray(text), np.ascontiguousarray(line_offsets), np.ascontiguousarray(rows), keys)
    return keys


class KeyedSums(Generic[Number]):
    """Key -> sum, in open addressing.

    `look_up` may be called by several threads at once, but not while something is added.

    Args:
        kind: of the sums.

    Attributes:
        slots: uint64, the keys where `find_key` finds them; 0 where there is none.
        sums: of the same shape; 0 where there is no key.
    """

    def __init__(self, kind: type[Number]) -> None:
        self.slots = np.zeros(1, np.uint64)
        self.sums: npt.NDArray[Number] = np.zeros(1, kind)
        self._kind: type[Number] = kind
        self._keys = 0

    def add(self, keys: HashArray, numbers: npt.NDArray[Number]) -> None:
        """Add number k to the sum of key k.

        Args:
            keys: uint64, shape (K,), as from `side_keys`; a key may come several times, 0 is none.
            numbers: shape (K,), of the kind of the sums.
        """
        if keys.dtype != np.uint64 or numbers.dtype != self._kind or keys.ndim != 1 or keys.shape != numbers.shape:
            raise ValueError(f"expected uint64 keys, and a number for each, {self._kind.__name__}")
        needed = _size(self._keys + len(keys))
        if needed > len(self.slots):
            self._resize(max(needed, 2 * len(self.slots)))
        self._keys += int(_add(np.ascontiguousarray(keys), np.ascontiguousarray(numbers), self.slots, self.sums))

    def shrink(self) -> None:
        """Give back what was kept for keys to come."""
        if _size(self._keys) < len(self.slots):
            self._resize(_size(self._keys))

    def look_up(self, keys: HashArray) -> npt.NDArray[Number]:
        """The sums of K keys, shape (K,); 0 where there is none.

        Args:
            keys: uint64, shape (K,), as from `side_keys`.
        """
        if keys.dtype != np.uint64 or keys.ndim != 1:
            raise ValueError("expected uint64 keys")
        found = np.empty(len(keys), self._kind)
        _look_up(np.ascontiguousarray(keys), self.slots, self.sums, found)
        return found

    def _resize(self, size: int) -> None:
        slots, sums = np.zeros(size, np.uint64), np.zeros(size, self._kind)
        _add(self.slots, self.sums, slots, sums)
        self.slots, self.sums = slots, sums


def _size(keys: int) -> int:
    """Slots for so many keys, one of them at least empty."""
    return keys + keys // 2 + 1
