"""Vocabularies, which map words to ids and back.

Words are byte strings: tables in Latin-1 exist and are never re-encoded.  A vocabulary holds words without Moses'
escapes (`'s`, not `&apos;s`), so that look-up works for escaped and unescaped text alike.  Id 0 is the unknown word.

The look-up tables are plain arrays, so that the kernels that scan tables can convert text to ids without Python
objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError, reason
from phrasetool.kernels.bytes import PIPE, is_blank, same_bytes
from phrasetool.kernels.hashing import FNV_BASIS, find_bytes, find_hashed_bytes, fnv, make_slots
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array
from phrasetool.text_splitting import split_words

UNKNOWN = 0
# Id that `look_up_next` returns for a token that is not a word.
LABEL = -1
UNKNOWN_WORD = b"<unk>"

# Moses' escapes (scripts/tokenizer/deescape-special-chars.perl), including the legacy ones.
_ESCAPES = [
    (b"&amp;", b"&"),
    (b"&#124;", b"|"),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&apos;", b"'"),
    (b"&quot;", b'"'),
    (b"&#91;", b"["),
    (b"&#93;", b"]"),
    (b"&bar;", b"|"),
    (b"&bra;", b"["),
    (b"&ket;", b"]"),
]
# Escapes in current use; the ampersand comes first because all others contain one.
_WRITTEN = _ESCAPES[:8]
_ESCAPE_TEXT = np.frombuffer(b"".join(e for e, _ in _ESCAPES), np.uint8)
_ESCAPE_OFFSETS = np.cumsum([0] + [len(e) for e, _ in _ESCAPES])
_ESCAPE_VALUES = np.frombuffer(b"".join(v for _, v in _ESCAPES), np.uint8)
_AMPERSAND = np.uint8(ord("&"))
_OPEN = np.uint8(ord("["))
_CLOSE = np.uint8(ord("]"))


@borrowing_kernel
def unescape_into(text: ByteArray, start: int, end: int, buffer: ByteArray) -> int:
    """Copy text[start:end] to `buffer` without Moses' escapes; return the length, which is at most end - start."""
    length = 0
    i = start
    while i < end:
        value = text[i]
        step = 1
        if value == _AMPERSAND:
            for e in range(len(_ESCAPE_VALUES)):
                first, last = _ESCAPE_OFFSETS[e], _ESCAPE_OFFSETS[e + 1]
                size = last - first
                if i + size <= end and same_bytes(text, i, _ESCAPE_TEXT, first, size):
                    value = _ESCAPE_VALUES[e]
                    step = size
                    break
        buffer[length] = value
        length += 1
        i += step
    return length


@exact_kernel
def _fill(words: ByteArray, offsets: Int64Array, slots: Int32Array) -> int:
    """Enter all words; return the first duplicate word, or -1."""
    for word in range(len(offsets) - 1):
        start, end = offsets[word], offsets[word + 1]
        slot = find_bytes(words, start, end, words, offsets, slots)
        if slots[slot] >= 0:
            return word
        slots[slot] = word
    return -1


@borrowing_kernel
def is_label(text: ByteArray, start: int, end: int) -> bool:
    """Return whether a token is a non-terminal or left-hand side, `[X]` or `[X][Y]`, as in Moses."""
    return end - start > 2 and text[start] == _OPEN and text[end - 1] == _CLOSE


@borrowing_kernel
def _find_unescaped(
    text: ByteArray, start: int, end: int, words: ByteArray, offsets: Int64Array, slots: Int32Array, buffer: ByteArray
) -> int:
    length = unescape_into(text, start, end, buffer)
    return slots[find_bytes(buffer, 0, length, words, offsets, slots)]


@borrowing_kernel
def look_up_next(
    text: ByteArray, start: int, limit: int, words: ByteArray, offsets: Int64Array, slots: Int32Array, buffer: ByteArray
) -> tuple[int, int]:
    """Read the token that begins at `start` and ends at a space, a tab or `limit`.

    Returns:
        The id and the end of the token.  The id is that of the unescaped token, else of its first factor, else unknown;
        for a non-terminal or left-hand side in brackets, it is LABEL.
    """
    h = FNV_BASIS
    pipe = start
    escaped = False
    i = start
    while i < limit:
        c = text[i]
        if is_blank(c):
            break
        h = fnv(h, c)
        if c == _AMPERSAND:
            escaped = True
        elif c == PIPE and pipe == start:
            pipe = i
        i += 1
    if is_label(text, start, i):
        return LABEL, i
    if escaped:
        word = _find_unescaped(text, start, i, words, offsets, slots, buffer)
    else:
        word = slots[find_hashed_bytes(text, start, i, h, words, offsets, slots)]
    if word < 0 and pipe > start:
        word = _find_unescaped(text, start, pipe, words, offsets, slots, buffer)
    return max(word, UNKNOWN), i


class Vocabulary:
    """An ordered set of words; a word's id is its position.

    Args:
        words: distinct byte strings, unescaped; the first must be `<unk>`.
        counts: training count of each word; None for zeros.

    Raises:
        ValueError: a word occurs twice or is empty, the first is not `<unk>`, or the number of counts is wrong.
    """

    def __init__(self, words: Sequence[bytes], counts: Iterable[int] | None = None) -> None:
        self.words = list(words)
        self.counts = np.zeros(len(self.words), np.int64) if counts is None else np.fromiter(counts, np.int64)
        if not self.words or self.words[0] != UNKNOWN_WORD:
            raise ValueError(f"the first word must be {UNKNOWN_WORD.decode()}")
        if len(self.counts) != len(self.words):
            raise ValueError(f"{len(self.counts)} counts for {len(self.words)} words")
        if not all(self.words):
            raise ValueError("a word is empty")
        self._text = np.frombuffer(b"".join(self.words), np.uint8)
        self._offsets = np.zeros(len(self.words) + 1, np.int64)
        np.cumsum([len(word) for word in self.words], out=self._offsets[1:])
        self._slots = make_slots(len(self.words))
        repeated = _fill(self._text, self._offsets, self._slots)
        if repeated >= 0:
            raise ValueError(f"the word {self.words[repeated].decode('utf-8', 'replace')} occurs twice")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def tables(self) -> tuple[ByteArray, Int64Array, Int32Array]:
        """Arrays for `look_up_next`: text of all words, offsets, hash slots."""
        return self._text, self._offsets, self._slots

    def id(self, token: bytes) -> int:
        """Return the id of a token, which may have escapes; 0 if unknown."""
        text = np.frombuffer(token, np.uint8)
        return max(int(look_up_next(text, 0, len(text), *self.tables, np.empty(len(text) + 1, np.uint8))[0]), UNKNOWN)

    def ids(self, text: bytes) -> list[int]:
        """Return the ids of the words of a phrase, separated by spaces and tabs."""
        return [self.id(token) for token in split_words(text)]

    def phrase(self, ids: npt.NDArray[np.integer] | Sequence[int]) -> bytes:
        """Return the words of a phrase, joined by spaces."""
        return b" ".join(self.words[i] for i in ids)

    def save(self, path: Path) -> None:
        """Write a line `word<TAB>count` per word, in the order of the ids."""
        lines = (b"%s\t%d\n" % pair for pair in zip(self.words, self.counts.tolist(), strict=True))
        path.write_bytes(b"".join(lines))

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a file written by `save`.

        Raises:
            ModelError: the file is missing or is not a vocabulary.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path}: cannot read the vocabulary: {reason(error)}") from error
        words, counts = [], []
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            word, tab, count = line.rpartition(b"\t")
            if not tab or not count.isdigit() or len(count) > 18:
                raise ModelError(f"{path}:{number}: expected a word, a tab and a count")
            words.append(word)
            counts.append(int(count))
        try:
            return cls(words, counts)
        except ValueError as error:
            raise ModelError(f"{path}: not a vocabulary: {error}") from error


def unescape(text: bytes) -> bytes:
    """Undo Moses' escapes."""
    array = np.frombuffer(text, np.uint8)
    buffer = np.empty(max(len(array), 1), np.uint8)
    return buffer[: unescape_into(array, 0, len(array), buffer)].tobytes()


def escape(text: bytes) -> bytes:
    """Escape a text like Moses' tokenizer (escape-special-chars.perl)."""
    for written, plain in _WRITTEN:
        text = text.replace(plain, written)
    return text


def has_escapes(text: bytes) -> bool:
    """Return whether a text has any of Moses' escapes."""
    return b"&" in text and any(written in text for written, _ in _ESCAPES)


def lacks_escapes(text: bytes) -> bool:
    """Return whether a text has a byte, other than `&`, that Moses' tokenizer would have escaped."""
    return any(plain in text for _, plain in _WRITTEN[1:])
