"""Hashes of phrases and phrase pairs: sets of pairs, sums by phrase, and hashed words.

A pair consists of its source and target tokens; blanks around and between tokens are ignored, as in Moses.  A set of
pairs keeps a 64-bit hash of each pair, 14 bytes per pair (22 while it is built), whatever the length of the phrases.
A collision of hashes (0.03 expected among a billion pairs) can only make the set report a pair that was not added: a
pair that was added is always found.

A 32-bit sum takes 18 bytes with its key, a 64-bit sum 24, and three times as much while the table grows.  Two phrases
with the same hash share a sum.  Words are hashed without a vocabulary, so that threads need no shared state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.lines.numbers import OK, scan_scores
from phrasetool.kernels.bytes import CR, LF, PIPE, SPACE, is_blank, skip_blanks, token_end
from phrasetool.kernels.hashing import FNV_BASIS, NO_KEY, find_key, fnv, fnv_bytes
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.pruning.composition import HashArray, HashedPhrases

_SMALLEST = np.uint64(1)
Number = TypeVar("Number", np.int32, np.float64)
_HALF = np.uint64(32)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)


@borrowing_kernel
def hash_field(text: ByteArray, start: int, end: int, h: np.uint64) -> tuple[np.uint64, int]:
    """Return the FNV-1a hash of the tokens of the field at `start`, continued from h, and the end of the field.

    Tokens are joined with one space.  The field ends at `|||`, a line feed or `end`.
    """
    # Whether there was a token, and whether blanks follow it.
    token, gap = False, False
    i = start
    while i < end:
        c = text[i]
        if c == LF or (c == PIPE and i + 2 < end and text[i + 1] == PIPE and text[i + 2] == PIPE):
            break
        if is_blank(c):
            gap = token
        else:
            if gap:
                h = fnv(h, SPACE)
                gap = False
            h = fnv(h, c)
            token = True
        i += 1
    return h, i


@inner_kernel
def as_key(h: np.uint64) -> np.uint64:
    """Return a hash as a non-zero key, because 0 stands for no key."""
    return max(h, _SMALLEST)


@borrowing_kernel
def _hash_pair(text: ByteArray, start: int, end: int) -> tuple[np.uint64, int]:
    """Return the FNV-1a hash of source tokens, line feed and target tokens, and the offset of the third field.

    A line text[start:end] with fewer than three fields has the hash 0.
    """
    h, i = hash_field(text, start, end, FNV_BASIS)
    if i >= end or text[i] == LF:
        return NO_KEY, i
    h, i = hash_field(text, i + 3, end, fnv(h, LF))
    if i >= end or text[i] == LF:
        return NO_KEY, i
    return as_key(h), i + 3


@exact_kernel
def _hash(text: ByteArray, line_offsets: Int64Array, selected: npt.NDArray[np.bool_], hashes: HashArray) -> None:
    for line in range(len(selected)):
        hashes[line] = NO_KEY
        if selected[line]:
            hashes[line] = _hash_pair(text, line_offsets[line], line_offsets[line + 1])[0]


@exact_kernel
def _read(text: ByteArray, scores: int, line_offsets: Int64Array, hashes: HashArray) -> bool:
    """Find every line and hash its pair; return False at the first line that cannot be read."""
    result = np.zeros(3, np.int64)
    line_offsets[0] = 0
    for line in range(len(hashes)):
        hashes[line], start = _hash_pair(text, line_offsets[line], len(text))
        end = start
        while end < len(text) and text[end] != LF:
            end += 1
        line_offsets[line + 1] = min(end + 1, len(text))
        if end > start and text[end - 1] == CR:
            end -= 1
        if hashes[line] == NO_KEY:
            return False
        scan_scores(text, start, end, scores, result)
        if result[0] != OK:
            return False
    return True


@exact_kernel
def _insert(hashes: HashArray, slots: HashArray) -> int:
    """Insert hashes into a set with enough free slots; return the number of new ones."""
    new = 0
    for h in hashes:
        if h != NO_KEY:
            slot = find_key(slots, h)
            new += slots[slot] == NO_KEY
            slots[slot] = h
    return new


@exact_kernel
def _find(hashes: HashArray, slots: HashArray, marks: npt.NDArray[np.bool_], matches: npt.NDArray[np.bool_]) -> None:
    """Look up hashes, and mark the slots of those in the set.

    Several threads may do this at once, because they only ever write True to a mark.
    """
    for k in range(len(hashes)):
        matches[k] = False
        if hashes[k] != NO_KEY:
            slot = find_key(slots, hashes[k])
            if slots[slot] != NO_KEY:
                matches[k] = True
                marks[slot] = True


def hash_pairs(text: ByteArray, line_offsets: Int64Array, selected: npt.NDArray[np.bool_]) -> HashArray:
    """Return a hash of the source and target tokens of each line.

    Args:
        text: uint8, shape (B,), lines of `source ||| target ||| ...`.
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
        selected: bool, shape (N,), the lines to hash.

    Returns:
        uint64, shape (N,); 0 for a line that is not selected, or that has fewer than three fields and so no pair.
    """
    if text.dtype != np.uint8 or line_offsets.dtype != np.int64 or selected.dtype != np.bool_:
        raise ValueError("expected uint8 text, int64 offsets and a mask")
    if len(line_offsets) != len(selected) + 1 or line_offsets[-1] > len(text):
        raise ValueError(f"{len(line_offsets)} offsets do not fit {len(selected)} lines in {len(text)} bytes")
    hashes = np.empty(len(selected), np.uint64)
    _hash(np.ascontiguousarray(text), np.ascontiguousarray(line_offsets), np.ascontiguousarray(selected), hashes)
    return hashes


def read_pair_hashes(text: ByteArray, lines: int, scores: int) -> tuple[Int64Array, HashArray] | None:
    """Return the offsets of the lines of a text and the hashes of their pairs, in one pass.

    Args:
        text: uint8, shape (B,), `lines` whole lines; the last may lack its line feed.
        scores: number of scores that each line must have; -1 for any number.

    Returns:
        line_offsets, int64, shape (N + 1,), and hashes as in `hash_pairs`, or None if a line cannot be read
        (`TableParser` reports the line and the reason).
    """
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("expected uint8 text")
    offsets, hashes = np.empty(lines + 1, np.int64), np.empty(lines, np.uint64)
    good = _read(np.ascontiguousarray(text), scores, offsets, hashes)
    return (offsets, hashes) if good else None


class PairSet:
    """A set of pairs that records which pairs were looked up.

    Args:
        parts: uint64 arrays as returned by `hash_pairs`; pairs may occur several times, 0 stands for no pair.
    """

    def __init__(self, parts: Sequence[HashArray]) -> None:
        count = sum(len(part) for part in parts)
        self._slots = np.zeros(count + count // 2 + 1, np.uint64)
        self._marks = np.zeros(len(self._slots), np.bool_)
        self._pairs = sum(int(_insert(part, self._slots)) for part in parts)

    def __len__(self) -> int:
        """Return the number of distinct pairs."""
        return self._pairs

    def find(self, hashes: HashArray) -> npt.NDArray[np.bool_]:
        """Return whether each of N pairs is in the set; may be called by several threads at once.

        Args:
            hashes: uint64, shape (N,), from `hash_pairs`; 0 is never in the set.
        """
        if hashes.dtype != np.uint64 or hashes.ndim != 1:
            raise ValueError("expected hashes from hash_pairs")
        matches = np.empty(len(hashes), np.bool_)
        _find(np.ascontiguousarray(hashes), self._slots, self._marks, matches)
        return matches

    def never_found(self) -> int:
        """Return the number of distinct pairs that `find` has never been called with."""
        return self._pairs - int(np.count_nonzero(self._marks))


@exact_kernel
def _side_keys(text: ByteArray, line_offsets: Int64Array, rows: Int64Array, keys: HashArray) -> None:
    """Store the keys of the source and target of line rows[k] in keys[:, k]; both are 0 if it has no target."""
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
    """Add numbers to the sums of their keys; return the number of new keys.

    Key 0 is skipped.  There must be enough free slots.
    """
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
def _look_up(keys: HashArray, slots: HashArray, sums: npt.NDArray[Number], values: npt.NDArray[Number]) -> None:
    """Store the sum of key k in values[k]; an empty slot has the sum 0."""
    for k in range(len(keys)):
        values[k] = sums[find_key(slots, keys[k])]


def side_keys(text: ByteArray, line_offsets: Int64Array, rows: Int64Array) -> HashArray:
    """Return the keys of the sources and targets of some lines.

    Args:
        text: uint8, shape (B,), lines of `source ||| target ||| ...`.
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
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
    """A hash table of sums by key, with open addressing.

    `look_up` may be called by several threads at once, but not at the same time as `add`.

    Args:
        kind: scalar type of the sums.

    Attributes:
        slots: uint64, the keys in the slots of `find_key`; 0 for an empty slot.
        sums: the sums of these keys, of the same shape; 0 for an empty slot.
    """

    def __init__(self, kind: type[Number]) -> None:
        self.slots = np.zeros(1, np.uint64)
        self.sums: npt.NDArray[Number] = np.zeros(1, kind)
        self._kind: type[Number] = kind
        self._keys = 0

    def add(self, keys: HashArray, numbers: npt.NDArray[Number]) -> None:
        """Add number k to the sum of key k.

        Args:
            keys: uint64, shape (K,), as from `side_keys`; keys may occur several times, 0 is skipped.
            numbers: shape (K,), of the kind of the sums.
        """
        if keys.dtype != np.uint64 or numbers.dtype != self._kind or keys.ndim != 1 or keys.shape != numbers.shape:
            raise ValueError(f"expected uint64 keys, and a number for each, {self._kind.__name__}")
        needed = _size(self._keys + len(keys))
        if needed > len(self.slots):
            self._resize(max(needed, 2 * len(self.slots)))
        self._keys += int(_add(np.ascontiguousarray(keys), np.ascontiguousarray(numbers), self.slots, self.sums))

    def shrink(self) -> None:
        """Release the memory that was reserved for further keys."""
        if _size(self._keys) < len(self.slots):
            self._resize(_size(self._keys))

    def look_up(self, keys: HashArray) -> npt.NDArray[Number]:
        """Return the sums of K keys, shape (K,); 0 for a missing key.

        Args:
            keys: uint64, shape (K,), as from `side_keys`.
        """
        if keys.dtype != np.uint64 or keys.ndim != 1:
            raise ValueError("expected uint64 keys")
        values = np.empty(len(keys), self._kind)
        _look_up(np.ascontiguousarray(keys), self.slots, self.sums, values)
        return values

    def _resize(self, size: int) -> None:
        slots, sums = np.zeros(size, np.uint64), np.zeros(size, self._kind)
        _add(self.slots, self.sums, slots, sums)
        self.slots, self.sums = slots, sums


def _size(keys: int) -> int:
    """Return the number of slots for this many keys, at least one of them empty."""
    return keys + keys // 2 + 1


@inner_kernel
def _spread(h: np.uint64) -> np.uint64:
    """Mix the bits of a hash, because sums of FNV hashes of short words would collide."""
    h = (h ^ (h >> _HALF)) * _SPREAD
    h = (h ^ (h >> _HALF)) * _SPREAD
    return h ^ (h >> _HALF)


@exact_kernel
def _hash_words(text: ByteArray, starts: Int64Array, ends: Int64Array, offsets: Int64Array, words: HashArray) -> None:
    count = 0
    offsets[0] = 0
    for field in range(len(starts)):
        end = ends[field]
        i = skip_blanks(text, starts[field], end)
        while i < end:
            first = i
            i = token_end(text, i, end)
            words[count] = _spread(fnv_bytes(text, first, i))
            count += 1
            i = skip_blanks(text, i, end)
        offsets[field + 1] = count


def hash_words(text: ByteArray, starts: Int64Array, ends: Int64Array) -> HashedPhrases:
    """Return the hashed words of the phrases text[starts[i]:ends[i]], separated by spaces and tabs.

    Args:
        text: uint8, shape (B,).
        starts, ends: int64, shape (N,).
    """
    offsets = np.zeros(len(starts) + 1, np.int64)
    words = np.empty(int(np.maximum((ends - starts + 1) // 2, 0).sum()), np.uint64)
    _hash_words(text, np.ascontiguousarray(starts), np.ascontiguousarray(ends), offsets, words)
    return HashedPhrases(offsets, words[: offsets[-1]].copy())
