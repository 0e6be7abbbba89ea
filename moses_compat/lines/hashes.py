"""Phrases and phrase pairs as hashes of their tokens: sets of pairs, sums by phrase, words of phrases.

A pair is its source and target tokens; the blanks around and between them do not count, as they do not for Moses.  A
set of pairs keeps 64 bits of the hash of each, 14 bytes a pair (22 for a moment while it is built), whatever the length
of the phrases.  Two pairs with one hash (of a billion pairs some 0.03 expected) can only make the set hold a pair too
many: a pair that was added is always found.

A sum of 32 bits takes 18 bytes with its key, one of 64 bits 24; three times that for a moment while room is made.
Two phrases with one hash share a sum.  Words are hashed without a vocabulary, so that threads share nothing.
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
    """FNV-1a, continued from h, of the tokens of the field at `start` with one space between them.

    The field ends at `|||`, a line feed or `end`; where that is comes back, too.
    """
    # Whether a token stands before, and whether blanks follow it.
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
    """A hash as a key: no hash is 0, which means none."""
    return max(h, _SMALLEST)


@borrowing_kernel
def _hash_pair(text: ByteArray, start: int, end: int) -> tuple[np.uint64, int]:
    """FNV-1a of the source tokens, a line feed, the target tokens, and where the third field begins.

    A line text[start:end] of fewer than three fields has the hash 0.
    """
    h, i = hash_field(text, start, end, FNV_BASIS)
    if i >= end or text[i] == LF:
        return NO_KEY, i
    h, i = hash_field(text, i + 3, end, fnv(h, LF))
    if i >= end or text[i] == LF:
        return NO_KEY, i
    return as_key(h), i + 3


@exact_kernel
def _hash(text: ByteArray, line_offsets: Int64Array, wanted: npt.NDArray[np.bool_], hashes: HashArray) -> None:
    for line in range(len(wanted)):
        hashes[line] = NO_KEY
        if wanted[line]:
            hashes[line] = _hash_pair(text, line_offsets[line], line_offsets[line + 1])[0]


@exact_kernel
def _read(text: ByteArray, scores: int, line_offsets: Int64Array, hashes: HashArray) -> bool:
    """Find every line and hash its pair; False as soon as a line cannot be read."""
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
    """Put hashes into a set with room for them; return how many were new."""
    new = 0
    for h in hashes:
        if h != NO_KEY:
            slot = find_key(slots, h)
            new += slots[slot] == NO_KEY
            slots[slot] = h
    return new


@exact_kernel
def _find(hashes: HashArray, slots: HashArray, marks: npt.NDArray[np.bool_], found: npt.NDArray[np.bool_]) -> None:
    """Look hashes up, and mark the slots of those that are there.

    Threads may do so at once: all that any of them ever writes to a mark is True.
    """
    for k in range(len(hashes)):
        found[k] = False
        if hashes[k] != NO_KEY:
            slot = find_key(slots, hashes[k])
            if slots[slot] != NO_KEY:
                found[k] = True
                marks[slot] = True


def hash_pairs(text: ByteArray, line_offsets: Int64Array, wanted: npt.NDArray[np.bool_]) -> HashArray:
    """A hash of the source and target tokens of each line.

    Args:
        text: uint8, shape (B,), lines of `source ||| target ||| ...`.
        line_offsets: int64, shape (N + 1,), where each line begins, and the end of the last.
        wanted: bool, shape (N,), the lines to hash.

    Returns:
        uint64, shape (N,); 0 for a line that is not wanted, or that has fewer than three fields and so no pair.
    """
    if text.dtype != np.uint8 or line_offsets.dtype != np.int64 or wanted.dtype != np.bool_:
        raise ValueError("expected uint8 text, int64 offsets and a mask")
    if len(line_offsets) != len(wanted) + 1 or line_offsets[-1] > len(text):
        raise ValueError(f"{len(line_offsets)} offsets do not fit {len(wanted)} lines in {len(text)} bytes")
    hashes = np.empty(len(wanted), np.uint64)
    _hash(np.ascontiguousarray(text), np.ascontiguousarray(line_offsets), np.ascontiguousarray(wanted), hashes)
    return hashes


def read_pair_hashes(text: ByteArray, lines: int, scores: int) -> tuple[Int64Array, HashArray] | None:
    """Where the lines of a text begin and the hashes of their pairs, in one go.

    Args:
        text: uint8, shape (B,), `lines` whole lines; the last may lack its line feed.
        scores: how many scores a line must have; -1 for any number.

    Returns:
        line_offsets, int64, shape (N + 1,), and hashes as `hash_pairs` gives them, or None if a line cannot be read
        (`TableParser` says which and why).
    """
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("expected uint8 text")
    offsets, hashes = np.empty(lines + 1, np.int64), np.empty(lines, np.uint64)
    good = _read(np.ascontiguousarray(text), scores, offsets, hashes)
    return (offsets, hashes) if good else None


class PairSet:
    """A set of pairs that remembers which of them were found.

    Args:
        parts: uint64 arrays as `hash_pairs` returns them; a pair may come several times, 0 is no pair.
    """

    def __init__(self, parts: Sequence[HashArray]) -> None:
        count = sum(len(part) for part in parts)
        self._slots = np.zeros(count + count // 2 + 1, np.uint64)
        self._marks = np.zeros(len(self._slots), np.bool_)
        self._pairs = sum(int(_insert(part, self._slots)) for part in parts)

    def __len__(self) -> int:
        """How many different pairs there are."""
        return self._pairs

    def find(self, hashes: HashArray) -> npt.NDArray[np.bool_]:
        """Whether each of N pairs is in the set; may be called by several threads at once.

        Args:
            hashes: uint64, shape (N,), from `hash_pairs`; 0 is never in the set.
        """
        if hashes.dtype != np.uint64 or hashes.ndim != 1:
            raise ValueError("expected hashes from hash_pairs")
        found = np.empty(len(hashes), np.bool_)
        _find(np.ascontiguousarray(hashes), self._slots, self._marks, found)
        return found

    def never_found(self) -> int:
        """How many different pairs `find` has not been asked for."""
        return self._pairs - int(np.count_nonzero(self._marks))


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


@inner_kernel
def _spread(h: np.uint64) -> np.uint64:
    """Every bit of a hash moves half of the bits: sums of FNV hashes of short words would meet."""
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
    """The phrases text[starts[i]:ends[i]], whose words stand between spaces and tabs.

    Args:
        text: uint8, shape (B,).
        starts, ends: int64, shape (N,).
    """
    offsets = np.zeros(len(starts) + 1, np.int64)
    words = np.empty(int(np.maximum((ends - starts + 1) // 2, 0).sum()), np.uint64)
    _hash_words(text, np.ascontiguousarray(starts), np.ascontiguousarray(ends), offsets, words)
    return HashedPhrases(offsets, words[: offsets[-1]].copy())
