"""Mapping between words and ids for the engine: words are bytes, never unescaped, and every distinct word has an id.

The vocabulary of a model (`phrasetool.vocabulary`) maps `&apos;s` and `'s` to one id.  An aligner, an extractor or a
decoder must not, because it writes words exactly as it reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.bytes import CR, LF, copy_bytes, is_blank
from phrasetool.kernels.hashing import FNV_BASIS, FREE, find_bytes, find_hashed_bytes, fnv
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array, Phrases
from phrasetool.vocabulary import unescape


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
    """Read fields from field position[0], byte position[1] on; return False if the tables must grow for the next word.

    position = (field, byte in the text or -1 at the start of a field, ids written, known words, bytes of next word).
    """
    count = position[2]
    known = position[3]
    for field in range(position[0], len(starts)):
        i = starts[field] if position[1] < 0 else position[1]
        position[1] = -1
        end = ends[field]
        while i < end:
            if is_blank(text[i]):
                i += 1
                continue
            first = i
            h = FNV_BASIS
            while i < end and not is_blank(text[i]):
                h = fnv(h, text[i])
                i += 1
            slot = find_hashed_bytes(text, first, i, h, words, offsets, slots)
            if slots[slot] < 0 and add:
                if known + 2 > len(offsets) or 2 * known >= len(slots) or offsets[known] + i - first > len(words):
                    position[0], position[1], position[2], position[3] = field, first, count, known
                    position[4] = i - first
                    return False
                offsets[known + 1] = copy_bytes(text, first, i, words, offsets[known])
                slots[slot] = known
                known += 1
            ids[count] = slots[slot]
            count += 1
        phrase_offsets[field + 1] = count
    position[0], position[2], position[3] = len(starts), count, known
    return True


@exact_kernel
def _enter_all(words: ByteArray, offsets: Int64Array, known: int, slots: Int32Array) -> None:
    for word in range(known):
        first, last = offsets[word], offsets[word + 1]
        slots[find_bytes(words, first, last, words, offsets, slots)] = word


class Symbols:
    """Distinct words, numbered from 0 in the order of their first occurrence.

    Args:
        words: initial words; duplicates are ignored.
    """

    def __init__(self, words: Iterable[bytes] = ()) -> None:
        self._known = 0
        self._text = np.empty(1 << 12, np.uint8)
        self._offsets = np.zeros(1 << 9, np.int64)
        self._slots = np.full(1 << 10, FREE, np.int32)
        self._list: list[bytes] = []
        for word in words:
            self.add(word)

    def __len__(self) -> int:
        return self._known

    @property
    def words(self) -> list[bytes]:
        """All words, in id order."""
        if len(self._list) < self._known:
            text, offsets = self.text
            data = text.tobytes()
            self._list.extend(data[a:b] for a, b in pairwise(offsets[len(self._list) :].tolist()))
        return self._list

    @property
    def text(self) -> tuple[ByteArray, Int64Array]:
        """The concatenated words, uint8, and their offsets, int64, shape (len + 1,)."""
        offsets = self._offsets[: self._known + 1]
        return self._text[: offsets[-1]], offsets

    @property
    def tables(self) -> tuple[ByteArray, Int64Array, Int32Array]:
        """Arguments of `find_hashed_bytes`: text, offsets of the words, slots.  A new word may make them obsolete."""
        return self._text, self._offsets, self._slots

    def id(self, word: bytes) -> int:
        """Return the id of a word, or -1."""
        text = np.frombuffer(word, np.uint8)
        return int(self._slots[find_bytes(text, 0, len(text), self._text, self._offsets, self._slots)])

    def add(self, word: bytes) -> int:
        """Return the id of a word, and add the word if it is new.

        Raises:
            ValueError: the word is empty or contains a space, a tab or a line feed.
        """
        if not word or any(c in word for c in b" \t\n"):
            raise ValueError(f"{word!r} is not one word")
        ends = np.array([len(word)], np.int64)
        return int(self.read_fields(np.frombuffer(word, np.uint8), np.zeros(1, np.int64), ends)[0][0])

    def join(self, ids: npt.NDArray[np.integer] | Iterable[int]) -> bytes:
        """Return the words with these ids, separated by spaces."""
        words = self.words
        return b" ".join(words[i] for i in ids)

    def read_lines(self, text: bytes | ByteArray, add: bool = True) -> Phrases:
        """Read one phrase per line; see `read_fields`.  A carriage return at the end of a line is ignored."""
        array = np.frombuffer(text, np.uint8) if isinstance(text, bytes) else text
        ends = np.flatnonzero(array == LF)
        starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
        if len(starts) > 1 and starts[-1] == len(array):
            starts = starts[:-1]
        else:
            ends = np.append(ends, len(array))
        if not len(array):
            return Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
        returns = (ends > starts) & (array[np.maximum(ends - 1, 0)] == CR)
        return self.read_fields(array, starts, ends - returns, add)

    def read_fields(self, text: ByteArray, starts: Int64Array, ends: Int64Array, add: bool = True) -> Phrases:
        """Read the phrases text[starts[i]:ends[i]], whose tokens are separated by spaces and tabs.

        Args:
            text: uint8, shape (B,).
            starts, ends: int64, shape (N,).
            add: give new words an id; otherwise their id is -1.
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
        """Make room for a word of `size` bytes by doubling the arrays that are full."""
        if self._known + 2 > len(self._offsets):
            self._offsets = np.concatenate([self._offsets, np.zeros_like(self._offsets)])
        if self._offsets[self._known] + size > len(self._text):
            self._text = np.concatenate([self._text, np.empty(len(self._text) + size, np.uint8)])
        if 2 * self._known >= len(self._slots):
            self._slots = np.full(2 * len(self._slots), FREE, np.int32)
            _enter_all(self._text, self._offsets, self._known, self._slots)


def read_written_words(sentences: Sequence[str | bytes]) -> tuple[Phrases, list[bytes]]:
    """Return sentences as ids of their distinct words, and these words as written, with Moses' escapes.

    Args:
        sentences: words separated by spaces; text that is not UTF-8 as bytes, or with surrogates.
    """
    if isinstance(sentences, str | bytes):
        raise TypeError("expected several sentences, found one")
    lines = [line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape") for line in sentences]
    sizes = np.array([len(line) for line in lines], np.int64)
    ends = np.cumsum(sizes)
    symbols = Symbols()
    text = np.frombuffer(b"".join(lines), np.uint8)
    return symbols.read_fields(text, ends - sizes, ends), symbols.words


def read_words(sentences: Sequence[str | bytes]) -> tuple[Phrases, list[bytes]]:
    """Return sentences as ids of their distinct words, and these words with Moses' escapes undone.

    Args:
        sentences: see `read_written_words`.
    """
    read, words = read_written_words(sentences)
    plain: dict[bytes, int] = {}
    ids = [plain.setdefault(unescape(word) if b"&" in word else word, len(plain)) for word in words]
    return Phrases(read.offsets, np.array(ids, np.int32)[read.words] if ids else read.words), list(plain)


def sentence_lengths(sentences: Sequence[str | bytes]) -> Int64Array:
    """Return the number of words of each of N sentences, int64, shape (N,)."""
    return read_words(sentences)[0].lengths
