"""Conversion of a table's words into another system's vocabulary units: words, or subwords of its segmenter."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from phrasetool.kernels.bytes import LF, SPACE, TAB, copy_bytes
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.text_splitting import split_words

SPACE_MARK = "\u2581"
# Space mark of byte-level vocabularies, whose segmenters need the space itself as input.
_BYTE_SPACE = "\u0120"
# Contractions that the Moses tokeniser splits off the preceding word.
_CONTRACTION = re.compile(r"n't|'\w{1,2}", re.IGNORECASE)
# Scripts written without spaces: Thai to Burmese, Khmer, kana, Han, and their extensions.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class Texts(NamedTuple):
    """Concatenated texts.

    Attributes:
        text: uint8, the bytes of all texts.
        offsets: int64, shape (N + 1,), the start of each text, and the end of the last.
    """

    text: ByteArray
    offsets: Int64Array


@exact_kernel
def _join(
    phrase_offsets: Int64Array,
    ids: Int32Array,
    words: ByteArray,
    word_offsets: Int64Array,
    offsets: Int64Array,
    out: ByteArray,
) -> None:
    position = 0
    for phrase in range(len(phrase_offsets) - 1):
        for k in range(phrase_offsets[phrase], phrase_offsets[phrase + 1]):
            if k > phrase_offsets[phrase]:
                out[position] = SPACE
                position += 1
            position = copy_bytes(words, word_offsets[ids[k]], word_offsets[ids[k] + 1], out, position)
        offsets[phrase + 1] = position


def joined(phrases: Phrases, words: Texts) -> Texts:
    """Return the words of each phrase, joined by single spaces.

    Raises:
        ValueError: a phrase contains a word without a text.
    """
    count = len(words.offsets) - 1
    if len(phrases.words) and not 0 <= phrases.words.min() <= phrases.words.max() < count:
        raise ValueError(f"word number out of range ({count} words)")
    size = int(np.diff(words.offsets)[phrases.words].sum() + np.maximum(phrases.lengths - 1, 0).sum())
    offsets, out = np.zeros(len(phrases) + 1, np.int64), np.empty(size, np.uint8)
    _join(phrases.offsets, phrases.words, words.text, words.offsets, offsets, out)
    return Texts(out, offsets)


@exact_kernel
def _put_lines(
    keys: ByteArray, key_offsets: Int64Array, values: ByteArray, value_offsets: Int64Array, rows: Int64Array,
    out: ByteArray,
) -> None:  # fmt: skip
    position = 0
    for row in range(len(rows)):
        position = copy_bytes(keys, key_offsets[row], key_offsets[row + 1], out, position)
        out[position] = TAB
        first, last = value_offsets[rows[row]], value_offsets[rows[row] + 1]
        position = copy_bytes(values, first, last, out, position + 1)
        out[position] = LF
        position += 1


def lines_of(keys: Texts, values: Texts, rows: Int64Array) -> ByteArray:
    """Return a line for each key: the key, a tab, its value, a line feed.

    Args:
        keys: R texts.
        values: V texts.
        rows: int64, shape (R,), the index of each key's value.

    Raises:
        ValueError: an index is out of range, or the numbers of keys and rows differ.
    """
    count = len(values.offsets) - 1
    if len(rows) != len(keys.offsets) - 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < count):
        raise ValueError(f"{len(keys.offsets) - 1} keys and {len(rows)} rows of {count} values")
    size = len(keys.text) + int(np.diff(values.offsets)[rows].sum()) + 2 * len(rows)
    out = np.empty(size, np.uint8)
    _put_lines(*keys, *values, rows, out)
    return out


class Segmenter(Protocol):
    """Segmenter that splits words into units.

    Attributes:
        glues: whether the units of a word may depend on whether a space precedes it in running text.
    """

    glues: bool

    def __call__(self, word: str) -> Sequence[str]:
        """Return the units of a word preceded by a space; empty if the word cannot be represented."""

    def glued(self, word: str) -> Sequence[str]:
        """Return the units of a word not preceded by a space."""

    def text(self, line: str) -> list[str]:
        """Return the units of a line of text, as the other system would segment it."""


class Words:
    """Trivial segmenter whose units are words."""

    glues = False

    def __call__(self, word: str) -> Sequence[str]:
        """Return the word as its only unit."""
        return (word,)

    glued = __call__

    def text(self, line: str) -> list[str]:
        """Return the words of a line."""
        return split_words(line)


class Pieces:
    """Segmenter that splits words into the subwords of a segmenter for running text.

    Args:
        encode: splits a text into subwords.
        known: all subwords.
    """

    def __init__(self, encode: Callable[[str], Sequence[str]], known: Collection[str]) -> None:
        self._encode, self._known = encode, known
        self._before = " " if encode("a")[:1] != encode(" a")[:1] and encode(" a")[0].startswith(_BYTE_SPACE) else ""
        mark = encode(self._before + "a")[:1]
        self._mark = next((m for m in (SPACE_MARK, _BYTE_SPACE) if mark and mark[0].startswith(m)), "")
        self.glues = bool(self._mark)

    def __call__(self, word: str) -> Sequence[str]:
        """Return the subwords of a word preceded by a space."""
        return self._encode(self._before + word)

    def glued(self, word: str) -> Sequence[str]:
        """Return the subwords of a word, without a preceding space if the word may occur without one."""
        pieces = self(word)
        if not self.glues or not pieces or not may_be_glued(word) or not pieces[0].startswith(self._mark):
            return pieces
        first = pieces[0].removeprefix(self._mark)
        if first and first not in self._known:
            return (*(letter for letter in first if letter in self._known), *pieces[1:])
        return (first, *pieces[1:]) if first else pieces[1:]

    def text(self, line: str) -> list[str]:
        """Return the subwords of a line of running text."""
        return list(self._encode(line))


def may_be_glued(word: str) -> bool:
    """Return whether a token of a table may have had no space before it in the original text."""
    return bool(not word[0].isalnum() or _CONTRACTION.fullmatch(word) or _WITHOUT_SPACES.match(word))


class UnitTable:
    """Mapping from the words of a table to their units; words may be added to the table later.

    Args:
        symbols: the words, as they are written in the table.
        word_of: returns the text of a word of the table; empty for tokens that are not words.
        segmenter: splits a word into units.
        known: the existing units; all others are left out.  None: no restriction.
        both: whether `expand` gives a word that may follow another without a space the units of both its forms.
    """

    def __init__(
        self, symbols: Symbols, word_of: Callable[[bytes], str], segmenter: Segmenter,
        known: Collection[str] | None = None, both: bool = False,
    ) -> None:  # fmt: skip
        self.units = Symbols()
        self._symbols, self._word_of, self._segmenter = symbols, word_of, segmenter
        self._allowed, self._both = known, both
        self._known = 0
        none = Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
        self._spaced, self._glued = none, none

    def _learn(self) -> tuple[Phrases, Phrases]:
        """Return the units of all words, with and without a preceding space, computing those of new words."""
        if self._known < len(self._symbols):
            new = [self._units_of(written) for written in self._symbols.words[self._known :]]
            self._spaced = Phrases.concatenate([self._spaced, self._numbered([spaced for spaced, _ in new])])
            if self._segmenter.glues:
                self._glued = Phrases.concatenate([self._glued, self._numbered([glued for _, glued in new])])
            self._known = len(self._symbols)
        return self._spaced, self._glued

    def _units_of(self, written: bytes) -> tuple[Sequence[str], Sequence[str]]:
        """Return the units of a word of the table, with and without a preceding space."""
        word = self._word_of(written)
        spaced = self._segmenter(word) if word else ()
        if not spaced or not self._segmenter.glues:
            return spaced, spaced
        glued = self._segmenter.glued(word)
        return tuple(dict.fromkeys((*spaced, *glued))) if self._both else spaced, glued

    def _numbered(self, words: Sequence[Sequence[str]]) -> Phrases:
        allowed = self._allowed
        text = "".join(" ".join(u for u in units if allowed is None or u in allowed) + "\n" for units in words)
        return self.units.read_lines(text.encode("utf-8", "surrogateescape"))

    def expand(self, phrases: Phrases) -> Phrases:
        """Convert phrases of words to phrases of units."""
        return _expanded(phrases, self._learn()[0])

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self._symbols)

    def known(self, words: Int32Array) -> Mask:
        """Return whether each word has units: bool, shape (N,)."""
        has_units: Mask = self._learn()[0].lengths[words] > 0
        return has_units

    def keys(self, phrases: Phrases) -> tuple[Texts, Int64Array]:
        """Return the texts of phrases in units, and the index of the phrase of each text, in ascending order.

        A phrase has one text for each distinct spacing of its words: a space before each word; no space, where words
        may be written without one, before all words but the first; or the same before all words.  A phrase has no
        text if one of its words has no units.
        """
        spaced, glued = self._learn()
        words = Texts(*self.units.text)
        whole = np.ones(len(phrases), np.bool_)
        owner = np.repeat(np.arange(len(phrases)), phrases.lengths)
        whole[owner[spaced.lengths[phrases.words] == 0]] = False
        rows = np.flatnonzero(whole)
        chosen = phrases.select(rows)
        if not self._segmenter.glues:
            return joined(_expanded(chosen, spaced), words), rows
        both = Phrases.concatenate([spaced, glued])
        inside = np.ones(len(chosen.words), np.bool_)
        inside[chosen.offsets[:-1][chosen.lengths > 0]] = False
        forms = [
            joined(_expanded(Phrases(chosen.offsets, chosen.words + len(spaced) * form.astype(np.int32)), both), words)
            for form in (np.zeros_like(inside), inside, np.ones_like(inside))
        ]
        return _distinct(forms, rows)

    def line(self, text: str) -> list[bytes]:
        """Return the units of a line of running text."""
        return [unit.encode("utf-8", "surrogateescape") for unit in self._segmenter.text(text)]


def _expanded(phrases: Phrases, units: Phrases) -> Phrases:
    """Replace each word of the phrases by its units."""
    parts = units.select(phrases.words)
    ends = prefix_sums(parts.lengths)
    return Phrases(ends[phrases.offsets], parts.words)


def _distinct(forms: Sequence[Texts], rows: Int64Array) -> tuple[Texts, Int64Array]:
    """Return the distinct texts of each row, and the row of each text."""
    texts: list[bytes] = []
    owners: list[int] = []
    data = [form.text.tobytes() for form in forms]
    ends = [form.offsets.tolist() for form in forms]
    for number, row in enumerate(rows.tolist()):
        distinct = dict.fromkeys(text[end[number] : end[number + 1]] for text, end in zip(data, ends, strict=True))
        texts.extend(distinct)
        owners.extend([row] * len(distinct))
    offsets = prefix_sums([len(text) for text in texts])
    return Texts(np.frombuffer(b"".join(texts), np.uint8), offsets), np.array(owners, np.int64)
