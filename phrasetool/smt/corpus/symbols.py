"""Words as they are written <-> ids, for the engine: bytes, never unescaped, every distinct word its own id.

`phrasetool.vocabulary` is what a model knows of a language; it folds `&apos;s` and `'s` together.  An aligner, an
extractor or a decoder must not: what it reads is what it writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array, Phrases

ABSENT = -1

_SPACE = np.uint8(32)
_TAB = np.uint8(9)
_LF = np.uint8(10)
_CR = np.uint8(13)
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)


@exact_kernel
def _place_of(text: ByteArray, start: int, end: int, words: ByteArray, offsets: Int64Array, slots: Int32Array) -> int:
    """The slot that holds the word text[start:end], or the free slot where it belongs."""
    h = _FNV_START
    for i in range(start, end):
        h = (h ^ np.uint64(text[i])) * _FNV_PRIME
    mask = len(slots) - 1
    place = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(mask))
    size = end - start
    while slots[place] >= 0:
        first = offsets[slots[place]]
        if offsets[slots[place] + 1] - first == size:
            k = 0
            while k < size and words[first + k] == text[start + k]:
                k += 1
            if k == size:
                break
        place = (place + 1) & mask
    return place


@exact_kernel
def _read(
    text: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    position: Int64Array,
    words: ByteArray,
    offsets: Int64Array,
    slots: Int32Array,
    add: bool,
    phrase_offsets: Int64Array,
    ids: Int32Array,
) -> bool:
    """Read fields from number position[0], byte position[1] on; False when the tables must grow before the next word.

    position = (field, byte in the text or -1 at the start of a field, ids written, words known, bytes of that word).
    """
    count = position[2]
    known = position[3]
    for field in range(position[0], len(starts)):
        i = starts[field] if position[1] < 0 else position[1]
        position[1] = -1
        end = ends[field]
        while i < end:
            if text[i] == _SPACE or text[i] == _TAB:
                i += 1
                continue
            first = i
            while i < end and text[i] != _SPACE and text[i] != _TAB:
                i += 1
            place = _place_of(text, first, i, words, offsets, slots)
            if slots[place] < 0 and add:
                if known + 2 > len(offsets) or 2 * known >= len(slots) or offsets[known] + i - first > len(words):
                    position[0], position[1], position[2], position[3] = field, first, count, known
                    position[4] = i - first
                    return False
                for k in range(i - first):
                    words[offsets[known] + k] = text[first + k]
                offsets[known + 1] = offsets[known] + i - first
                slots[place] = known
                known += 1
            ids[count] = slots[place]
            count += 1
        phrase_offsets[field + 1] = count
    position[0], position[2], position[3] = len(starts), count, known
    return True


@exact_kernel
def _enter_all(words: ByteArray, offsets: Int64Array, known: int, slots: Int32Array) -> None:
    for word in range(known):
        slots[_place_of(words, offsets[word], offsets[word + 1], words, offsets, slots)] = word


class Symbols:
    """Distinct words, numbered from 0 in the order of their first occurrence.

    Args:
        words: words to begin with; repetitions are ignored.
    """

    def __init__(self, words: Iterable[bytes] = ()) -> None:
        self._known = 0
        self._text = np.empty(1 << 12, np.uint8)
        self._offsets = np.zeros(1 << 9, np.int64)
        self._slots = np.full(1 << 10, ABSENT, np.int32)
        self._list: list[bytes] = []
        for word in words:
            self.add(word)

    def __len__(self) -> int:
        return self._known

    @property
    def words(self) -> list[bytes]:
        """All words, in id order."""
        if len(self._list) < self._known:
            data = self._text[: self._offsets[self._known]].tobytes()
            bounds = self._offsets[len(self._list) : self._known + 1].tolist()
            self._list.extend(data[a:b] for a, b in pairwise(bounds))
        return self._list

    def id(self, word: bytes) -> int:
        """The id of a word, or -1."""
        text = np.frombuffer(word, np.uint8)
        place = _place_of(text, 0, len(text), self._text, self._offsets, self._slots)
        return int(self._slots[place])

    def add(self, word: bytes) -> int:
        """The id of a word, new if it was not there.

        Raises:
            ValueError: the word is empty or holds a space, a tab or a line end.
        """
        if not word or any(c in word for c in b" \t\r\n"):
            raise ValueError(f"{word!r} is not one word")
        return int(self.read_lines(word)[0][0])

    def join(self, ids: npt.NDArray[np.integer] | Iterable[int]) -> bytes:
        """The words with these ids, with a space between."""
        words = self.words
        return b" ".join(words[i] for i in ids)

    def read_lines(self, text: bytes | ByteArray, add: bool = True) -> Phrases:
        """Read one phrase a line; see `read_fields`.  A carriage return before a line feed is not text."""
        array = np.frombuffer(text, np.uint8) if isinstance(text, bytes) else text
        ends = np.flatnonzero(array == _LF)
        starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
        if len(starts) > 1 and starts[-1] == len(array):
            starts = starts[:-1]
        else:
            ends = np.append(ends, len(array))
        if not len(array):
            return Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
        returns = (ends > starts) & (array[np.maximum(ends - 1, 0)] == _CR)
        return self.read_fields(array, starts, ends - returns, add)

    def read_fields(self, text: ByteArray, starts: Int64Array, ends: Int64Array, add: bool = True) -> Phrases:
        """Read the phrases text[starts[i]:ends[i]], whose tokens stand between spaces and tabs.

        Args:
            text: uint8, shape (B,).
            starts, ends: int64, shape (N,).
            add: give new words an id; else they read as -1.
        """
        starts = np.ascontiguousarray(starts, np.int64)
        ends = np.ascontiguousarray(ends, np.int64)
        offsets = np.zeros(len(starts) + 1, np.int64)
        ids = np.empty(int(np.maximum((ends - starts + 1) // 2, 0).sum()), np.int32)
        position = np.array([0, -1, 0, self._known, 0], np.int64)
        while not _read(text, starts, ends, position, self._text, self._offsets, self._slots, add, offsets, ids):
            self._known = int(position[3])
            self._grow(int(position[4]))
        self._known = int(position[3])
        return Phrases(offsets, ids[: offsets[-1]].copy())

    def _grow(self, size: int) -> None:
        """Make room for a word of `size` bytes; whatever is full is doubled."""
        if self._known + 2 > len(self._offsets):
            self._offsets = np.concatenate([self._offsets, np.zeros_like(self._offsets)])
        if self._offsets[self._known] + size > len(self._text):
            self._text = np.concatenate([self._text, np.empty(len(self._text) + size, np.uint8)])
        if 2 * self._known >= len(self._slots):
            self._slots = np.full(2 * len(self._slots), ABSENT, np.int32)
            _enter_all(self._text, self._offsets, self._known, self._slots)
