"""A phrase table in a decoder's arrays of scores and target words, and the share of a text that it covers.

A token counts as covered if it is part of a source phrase of the table that occurs in its sentence.  If the one-word
sources of a table were pruned, or the words of a language are translated together, many tokens are covered only by
longer phrases, which a decoder can use; a token that is in no such phrase is left untranslated, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import find_ids, make_slots
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases, gathered_runs
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.unique_phrases import number_distinct


class PhraseIndex(NamedTuple):
    """Hash table of distinct phrases, for kernels.

    Attributes:
        offsets, words: the phrases, as in `Phrases`.
        slots: int32, shape (P,), P a power of two: phrase numbers by hash, -1 where free.
        longest: int64, shape (1,), length of the longest phrase.
    """

    offsets: Int64Array
    words: Int32Array
    slots: Int32Array
    longest: Int64Array


@borrowing_kernel
def find_phrase(index: PhraseIndex, words: Int32Array, start: int, end: int) -> int:
    """Return the number of the phrase words[start:end], or -1."""
    return np.int64(index.slots[find_ids(words, start, end, index.words, index.offsets, index.slots)])


@exact_kernel
def _find_all(index: PhraseIndex, offsets: Int64Array, words: Int32Array, numbers: Int64Array) -> None:
    for i in range(len(numbers)):
        numbers[i] = find_phrase(index, words, offsets[i], offsets[i + 1])


def find_phrases(index: PhraseIndex, phrases: Phrases) -> Int64Array:
    """Return the number of each of N phrases in an index, int64 of shape (N,); -1 where the index lacks the phrase."""
    numbers = np.empty(len(phrases), np.int64)
    _find_all(index, phrases.offsets, phrases.words, numbers)
    return numbers


@exact_kernel
def _enter_all(index: PhraseIndex) -> None:
    for phrase in range(len(index.offsets) - 1):
        first, last = index.offsets[phrase], index.offsets[phrase + 1]
        index.slots[find_ids(index.words, first, last, index.words, index.offsets, index.slots)] = phrase


def index_phrases(phrases: Phrases) -> tuple[PhraseIndex, Int32Array]:
    """Index the distinct phrases among N phrases.

    Returns:
        The index, whose phrases are numbered in order of first occurrence, and int32 of shape (N,), the number of
        each phrase.
    """
    numbers, firsts = number_distinct(phrases)
    distinct = phrases.select(firsts)
    longest = np.array([distinct.lengths.max(initial=0)])
    index = PhraseIndex(distinct.offsets, distinct.words, make_slots(len(distinct)), longest)
    _enter_all(index)
    return index, numbers.astype(np.int32)


def spans_of(sentences: Phrases, longest: int) -> Phrases:
    """Return all word sequences of up to `longest` words in the sentences (with duplicates)."""
    lengths = sentences.lengths
    starts, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for size in range(1, min(longest, int(lengths.max(initial=0))) + 1):
        # Every position from which `size` words remain in its sentence.
        remaining = np.repeat(sentences.offsets[1:], lengths) - np.arange(sentences.offsets[-1])
        first = np.flatnonzero(remaining >= size)
        starts.append(first)
        sizes.append(np.full(len(first), size))
    offsets, positions = gathered_runs(np.concatenate(starts), np.concatenate(sizes))
    return Phrases(offsets, sentences.words[positions])


@dataclass(frozen=True)
class TranslationTable:
    """Phrase-table entries, grouped by source: N entries, G sources, C scores, R reordering scores.

    Attributes:
        index: the G source phrases, in ids of `source_symbols`.
        first: int64, shape (G + 1,): the entries of source g are first[g]..first[g + 1].
        targets: the N target phrases, in ids of `target_symbols`.
        scores: float32, shape (N, C), natural logarithms, at least -100.
        reordering: float32, shape (N, R), natural logarithms; 0 where the reordering table has no line.
        alignments: N ragged lists of 256 * source position + target position; all empty if the table has none.
        counts: float32, shape (N, 3), c(t) c(s) c(s,t); NaN where the table has none.
        numbers: int64, shape (N,): position of each entry in the table, from 0; -1 for an entry that is not in the
            table, but was added to copy a word that no entry translates alone.
        tables: int32, shape (N,): phrase table of each entry, by its position in moses.ini; 0 for a copy.
    """

    source_symbols: Symbols
    target_symbols: Symbols
    index: PhraseIndex
    first: Int64Array
    targets: Phrases
    scores: FloatArray
    reordering: FloatArray
    alignments: Phrases
    counts: FloatArray
    numbers: Int64Array
    tables: Int32Array

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def copies(self) -> npt.NDArray[np.bool_]:
        """Whether each entry is a copy that is not in the table, bool, shape (N,)."""
        copies: npt.NDArray[np.bool_] = self.numbers < 0
        return copies

    @property
    def entry_sources(self) -> Int32Array:
        """Source of each entry, int32, shape (N,)."""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))

    def sources_of(self, entries: Int32Array | Int64Array) -> Int64Array:
        """Return the source of each of these entries, int64."""
        return np.searchsorted(self.first, entries, side="right") - 1


@dataclass(frozen=True)
class Entries:
    """Entries in any order, as they are read; the attributes are those of `TranslationTable`."""

    sources: Phrases
    targets: Phrases
    scores: FloatArray
    reordering: FloatArray
    alignments: Phrases
    counts: FloatArray
    numbers: Int64Array
    tables: Int32Array

    def select(self, keep: npt.NDArray[np.bool_]) -> Entries:
        """Return the entries to keep; bool, shape (N,)."""
        return Entries(
            self.sources.select(keep), self.targets.select(keep), self.scores[keep], self.reordering[keep],
            self.alignments.select(keep), self.counts[keep], self.numbers[keep], self.tables[keep],
        )  # fmt: skip

    def in_table(self, table: int, columns: slice, width: int) -> Entries:
        """Return the entries as those of one of several tables, with scores of 0 for the other tables, as in Moses.

        Args:
            table: position of the table in moses.ini.
            columns: slice of its scores among those of all tables.
            width: number of scores of all tables.
        """
        scores = np.zeros((len(self.scores), width), np.float32)
        scores[:, columns] = self.scores
        return replace(self, scores=scores, tables=np.full(len(scores), table, np.int32))

    @classmethod
    def concatenate(cls, parts: Sequence[Entries]) -> Entries:
        """Concatenate entries that have the same number of scores."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            Phrases.concatenate([part.sources for part in parts]),
            Phrases.concatenate([part.targets for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.reordering for part in parts]),
            Phrases.concatenate([part.alignments for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.tables for part in parts]),
        )


def build_table(
    entries: Entries, source_symbols: Symbols, target_symbols: Symbols, copied: Int32Array | None = None
) -> TranslationTable:
    """Group entries by source and add copies of words that no entry translates alone.

    Moses calls a word unknown if no entry translates exactly that word, even if longer phrases cover it.

    Args:
        entries: in any order; the order within a source is kept.
        source_symbols, target_symbols: the ids of the entries' words.
        copied: source words of the text to translate; those without a one-word entry get a copy.
    """
    columns, orientations = entries.scores.shape[1], entries.reordering.shape[1]
    if copied is None:
        copied = np.zeros(0, np.int32)
    single = entries.sources.words[entries.sources.offsets[:-1][entries.sources.lengths == 1]]
    unknown = np.setdiff1d(copied, single).astype(np.int32)
    words = source_symbols.words
    targets = np.array([target_symbols.add(words[w]) for w in unknown], np.int32)
    sources = _appended(entries.sources, unknown)
    index, numbers = index_phrases(sources)
    order = np.argsort(numbers, kind="stable")
    first = np.zeros(len(index.offsets), np.int64)
    np.cumsum(np.bincount(numbers, minlength=len(first) - 1), out=first[1:])
    added = len(unknown)
    zeros = np.zeros((added, 1), np.float32)
    alignments = _appended(entries.alignments, np.zeros(added, np.int32))
    return TranslationTable(
        source_symbols,
        target_symbols,
        index,
        first,
        _appended(entries.targets, targets).select(order),
        np.concatenate([entries.scores, np.repeat(zeros, columns, axis=1)])[order],
        np.concatenate([entries.reordering, np.repeat(zeros, orientations, axis=1)])[order],
        alignments.select(order),
        np.concatenate([entries.counts, np.repeat(zeros + np.float32(np.nan), 3, axis=1)])[order],
        np.concatenate([entries.numbers, np.full(added, -1, np.int64)])[order],
        np.concatenate([entries.tables, np.zeros(added, np.int32)])[order],
    )


def _appended(phrases: Phrases, words: Int32Array) -> Phrases:
    """Return the phrases, followed by a one-word phrase for each of `words`."""
    offsets = np.concatenate([phrases.offsets, phrases.offsets[-1] + 1 + np.arange(len(words))])
    return Phrases(offsets, np.concatenate([phrases.words, words]).astype(np.int32))


def covered_tokens(table: TranslationTable, sentences: Phrases) -> npt.NDArray[np.bool_]:
    """Return which tokens of a text some entry of the table can translate.

    Args:
        table: entries; copies of unknown words do not count.
        sentences: the text, in ids of the table's source words.

    Returns:
        bool, one value for each of `sentences.words`.
    """
    known = ~table.copies[table.first[:-1]]
    # Phrases that begin at each token minus phrases that end before it.
    changes = np.zeros(len(sentences.words) + 1, np.int64)
    for size, starts, numbers in _occurrences(table, sentences):
        begins = starts[known[numbers]]
        changes[begins] += 1
        changes[begins + size] -= 1
    return np.asarray(np.cumsum(changes[:-1]) > 0)


def offered_words(table: TranslationTable, sentences: Phrases, best: int) -> Phrases:
    """Return the target words that a table offers for each sentence, whatever the weights of its scores.

    Args:
        table: entries; copies of unknown words do not count.
        sentences: S sentences, in ids of the table's source words.
        best: number of entries of each source phrase that are used: those with the highest sums of scores.

    Returns:
        S lists of distinct target words, ascending.
    """
    entries = _best_entries(table, best)
    targets = table.targets.select(entries)
    first = np.searchsorted(table.sources_of(entries), np.arange(len(table.first)))
    lines = np.repeat(np.arange(len(sentences)), sentences.lengths)
    words = len(table.target_symbols.words) + 1
    pairs = [np.zeros(0, np.int64)]
    for _, starts, numbers in _occurrences(table, sentences):
        used = np.unique(lines[starts] * len(table.first) + numbers)
        line, source = np.divmod(used, len(table.first))
        counts = first[source + 1] - first[source]
        _, rows = gathered_runs(first[source], counts)
        offered = targets.select(rows)
        pairs.append(np.unique(np.repeat(np.repeat(line, counts), offered.lengths) * words + offered.words))
    line, word = np.divmod(np.unique(np.concatenate(pairs)), words)
    return Phrases(np.searchsorted(line, np.arange(len(sentences) + 1)), word.astype(np.int32))


def _occurrences(table: TranslationTable, sentences: Phrases) -> Iterator[tuple[int, Int64Array, Int64Array]]:
    """Yield, for each length, the occurrences of source phrases in a text: length, first tokens and phrase numbers."""
    lengths = sentences.lengths
    left = np.repeat(sentences.offsets[1:], lengths) - np.arange(len(sentences.words))
    for size in range(1, min(int(table.index.longest[0]), int(lengths.max(initial=0))) + 1):
        starts = np.flatnonzero(left >= size)
        words = sentences.words[(starts[:, None] + np.arange(size)).ravel()]
        numbers = find_phrases(table.index, Phrases(np.arange(len(starts) + 1) * size, words))
        yield size, starts[numbers >= 0], numbers[numbers >= 0]


def _best_entries(table: TranslationTable, best: int) -> Int64Array:
    """Return the entries of each source with the highest sums of scores, without copies, ascending."""
    sources = table.entry_sources
    order = np.lexsort((-table.scores.sum(axis=1), sources))
    rank = np.arange(len(order)) - table.first[:-1][sources[order]]
    entries = order[rank < best]
    return np.sort(entries[~table.copies[entries]])
