"""Comparison of a table with texts: the share of a text that it covers, and whether it was made from a bitext."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_compat.lines.fields import gather
from moses_compat.lines.hashes import side_keys
from moses_compat.measures.pair_test import CorpusIndex
from phrasetool.kernels.bytes import LF, SPACE, TAB
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array, Mask, Phrases
from phrasetool.pruning.composition import HashArray
from phrasetool.pruning.significance import count_co_occurrences
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.unique_phrases import number_distinct

# Moses' default length in words of the longest phrases that are looked up (moses/parameters, max-phrase-length).
LONGEST_SOURCE = 20
# Bytes of phrases of a text that are hashed together.
_HASHED = 1 << 24
_SUFFIX = b" ||| |||\n"


@dataclass(frozen=True)
class Coverage:
    """The share of a text that the sources of a table cover.

    Attributes:
        tokens, sentences: tokens and sentences of the text; sentences without words are left out.
        by_words, by_any: tokens that are a source of one word; tokens inside a source of any length.
        sentences_by_words, sentences_by_any: sentences all of whose tokens are covered in that way.
        unknown: words that are not a source, with the number of their occurrences and of those inside a longer source,
            the most frequent first, then bytewise.
    """

    tokens: int
    sentences: int
    by_words: int
    by_any: int
    sentences_by_words: int
    sentences_by_any: int
    unknown: tuple[tuple[bytes, int, int], ...]


@dataclass(frozen=True)
class _Tokens:
    """The T tokens of a text.

    Attributes:
        starts, ends: byte offsets of the tokens in the text, int64, shape (T,).
        lines: the sentence of each, int64, shape (T,).
    """

    starts: Int64Array
    ends: Int64Array
    lines: Int64Array

    @classmethod
    def of(cls, text: ByteArray) -> _Tokens:
        blank = (text == SPACE) | (text == TAB) | (text == LF)
        borders = np.diff(np.concatenate([[True], blank, [True]]).astype(np.int8))
        starts, ends = np.flatnonzero(borders == -1), np.flatnonzero(borders == 1)
        return cls(starts, ends, np.cumsum(text == LF)[starts] if len(starts) else starts)


def cover(text: bytes, sources: HashArray, lengths: Int64Array) -> Coverage:
    """Measure how many tokens of a text are inside a source of a table.

    Args:
        text: one sentence per line, words separated by spaces.
        sources: keys of the sources (see `side_keys`), uint64, shape (G,).
        lengths: number of words of each source, int64, shape (G,).
    """
    array = np.frombuffer(text, np.uint8)
    tokens = _Tokens.of(array)
    single = np.zeros(len(tokens.starts), np.bool_)
    # At each token, the number of phrases that begin there minus the number that ended before it.
    changes = np.zeros(len(tokens.starts) + 1, np.int64)
    for size in np.unique(lengths[(lengths > 0) & (lengths <= LONGEST_SOURCE)]).tolist():
        known = np.unique(sources[lengths == size])
        for starts, keys in _phrase_keys(array, tokens, size):
            matches = starts[_is_in(keys, known)]
            changes[matches] += 1
            changes[matches + size] -= 1
            if size == 1:
                single[matches] = True
    covered = np.cumsum(changes[:-1]) > 0
    sentences = np.unique(tokens.lines)

    def whole(marks: Mask) -> int:
        return len(sentences) - len(np.unique(tokens.lines[~marks]))

    return Coverage(
        len(covered), len(sentences), int(single.sum()), int(covered.sum()), whole(single), whole(covered),
        _unknown_words(text, tokens, single, covered),
    )  # fmt: skip


def _phrase_keys(text: ByteArray, tokens: _Tokens, size: int) -> Iterator[tuple[Int64Array, HashArray]]:
    """Yield the first tokens and the keys of all phrases of `size` words."""
    starts = np.arange(max(len(tokens.starts) - size + 1, 0))
    starts = starts[tokens.lines[starts] == tokens.lines[starts + size - 1]]
    first, last = tokens.starts[starts], tokens.ends[starts + size - 1]
    padded = np.frombuffer(text.tobytes() + _SUFFIX, np.uint8)
    parts = np.cumsum(last - first + len(_SUFFIX)) // _HASHED
    for part in np.unique(parts).tolist():
        rows = np.flatnonzero(parts == part)
        # Each phrase is written as a line of a table, because `side_keys` reads tables.
        begin, end = np.full(2 * len(rows), len(text)), np.full(2 * len(rows), len(padded))
        begin[::2], end[::2] = first[rows], last[rows]
        lines, offsets = gather(padded, begin, end)
        # Read-only, like the texts of blocks for which the kernels were compiled.
        lines.flags.writeable = False
        yield starts[rows], side_keys(lines, np.ascontiguousarray(offsets[::2]), np.arange(len(rows)))[0]


def _is_in(keys: HashArray, known: HashArray) -> Mask:
    """Return whether each key is among the known keys, which are ascending."""
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    is_known: Mask = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return is_known


def _unknown_words(text: bytes, tokens: _Tokens, single: Mask, covered: Mask) -> tuple[tuple[bytes, int, int], ...]:
    rows = np.flatnonzero(~single)
    words = [text[a:b] for a, b in zip(tokens.starts[rows].tolist(), tokens.ends[rows].tolist(), strict=True)]
    counts = Counter(words)
    inside = Counter(word for word, marked in zip(words, covered[rows].tolist(), strict=True) if marked)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple((word, counts[word], inside[word]) for word in order)


class WordMarks:
    """Marks of the words of a text that occur in phrases of a table.

    Args:
        symbols: words of the text.
    """

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.known = np.zeros(len(symbols), np.bool_)

    def read(self, text: ByteArray, starts: Int64Array, ends: Int64Array) -> Phrases:
        """Return the phrases of fields in ids of the text's words, -1 for other words; safe to call in threads."""
        return self.symbols.read_fields(text, starts, ends, add=False)

    def add(self, words: Int64Array) -> None:
        """Mark words as known by their ids."""
        self.known[words] = True


def distinct_words(phrases: Phrases) -> Int64Array:
    """Return the distinct word ids of phrases, ascending, without -1."""
    words = np.unique(phrases.words).astype(np.int64)
    return words[words >= 0]


@dataclass(frozen=True)
class KnownWords:
    """Number of running words of a text, and of those that occur in phrases of a table."""

    words: int
    known: int

    @classmethod
    def of(cls, marks: WordMarks, words: Int64Array) -> KnownWords:
        """Count running words.

        Args:
            marks: marks of the known words.
            words: ids of the running words.
        """
        return cls(len(words), int(np.count_nonzero(marks.known[words])))


@dataclass(frozen=True)
class BitextFit:
    """Agreement of a table with the bitext from which it was presumably extracted.

    Attributes:
        pairs: sentence pairs.
        source, target: their running words that occur in sources and in targets of the table.
        known_pairs: sentence pairs all of whose words are known on both sides.
        entries: entries that were looked up.
        together: entries whose two sides occur together in a sentence pair.
        counted: entries with a joint count.
        consistent: of these, entries that occur together and whose joint count is no larger than the occurrences of
            either side.
    """

    pairs: int
    source: KnownWords
    target: KnownWords
    known_pairs: int
    entries: int
    together: int
    counted: int
    consistent: int


class BitextLookup:
    """Lookup of the entries of a table in a bitext.

    Args:
        source, target: indexes of the sides of the bitext.
    """

    def __init__(self, source: CorpusIndex, target: CorpusIndex) -> None:
        self.sides = source, target
        self.marks = WordMarks(source.symbols), WordMarks(target.symbols)

    def __call__(self, sources: Phrases, targets: Phrases, joint: DoubleArray) -> tuple[Mask, Mask]:
        """Look up M entries; safe to call in threads.

        Args:
            sources, targets: M phrases each, in ids of the bitext.
            joint: joint counts, float64, shape (M,); NaN for a missing count.

        Returns:
            Whether the two sides of each entry occur together in a sentence pair, and whether its joint count is
            consistent, bool, shape (M,).
        """
        indexes = self.sides[0].sentences, self.sides[1].sentences
        together = count_co_occurrences(*indexes, sources, targets)[0] > 0
        least = np.full(len(joint), np.iinfo(np.int64).max)
        for index, phrases in zip(indexes, (sources, targets), strict=True):
            numbers, firsts = number_distinct(phrases)
            least = np.minimum(least, index.occurrences(phrases.select(firsts))[numbers])
        # Fractional counts are rounded to six digits.
        return together, together & (joint <= least * (1 + 1e-5))

    def known_pairs(self) -> tuple[KnownWords, KnownWords, int]:
        """Return the known running words of both sides, and the number of sentence pairs whose words are all known."""
        complete = np.ones(self.sides[0].sentences.sentences, np.bool_)
        known = []
        for side, marks in zip(self.sides, self.marks, strict=True):
            text = side.sentences.text
            words = text >= 0
            lines = np.cumsum(~words)[words]
            running = text[words].astype(np.int64)
            known.append(KnownWords.of(marks, running))
            complete[lines[~marks.known[running]]] = False
        return known[0], known[1], int(complete.sum())
