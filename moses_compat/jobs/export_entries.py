"""Entries that are exported: those of source phrases, in numbers, and those that are frequent and probable, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE, OF_TARGET, CountTally, CountUse
from moses_compat.lines.scores import DIRECT_COLUMN, INVERSE_COLUMN, require_trained_scores
from moses_compat.lines.words import phrase_text
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.export.candidates import discounted_frequencies
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array, Mask
from phrasetool.pipeline import run


@dataclass(frozen=True)
class SourceEntries:
    """The entries of a block whose sources are short enough: N of G sources.

    Attributes:
        raw: the block.
        text: of the block.
        source_starts, source_ends: int64, shape (G,), where the sources stand in the text.
        weights: float64, shape (G,), how often each was seen; 1 where the table does not say.
        group_offsets: int64, shape (G + 1,).
        target_starts, target_ends: int64, shape (N,).
        values: float64, shape (N,), what each adds to the probabilities of its words.
        counts: float64, shape (N,), how often each was extracted; p(e|f) where the table does not say.
        tally: of the counts of all entries of the block.
    """

    raw: RawBlock
    text: ByteArray
    source_starts: Int64Array
    source_ends: Int64Array
    weights: DoubleArray
    group_offsets: Int64Array
    target_starts: Int64Array
    target_ends: Int64Array
    values: DoubleArray
    counts: DoubleArray
    tally: CountTally


def word_of(token: bytes) -> str:
    """What a word of a table says: its first factor, escapes undone; empty for a label."""
    return phrase_text(token)


class EntrySelector:
    """Reads a table once, and takes the entries of short sources.

    Args:
        source: the table, at its beginning.
        scan: how it is read.
        longest: words of a source.
        similarities: weigh the entries, if there are some.
    """

    def __init__(self, source: Input, scan: TableScan, longest: int, similarities: SimilaritySource | None) -> None:
        self._name, self._scan, self._longest = source.name, scan, longest
        self._reader = EntryReader(source, scan, similarities, columns=self._columns)
        self._order = SourceOrder(source, scan)

    def _columns(self, scores: int) -> tuple[int, ...]:
        require_trained_scores(self._name, scores, 1)
        return (DIRECT_COLUMN,) if scores > DIRECT_COLUMN else ()

    def blocks(self) -> Iterator[SourceEntries]:
        """The entries, block by block.

        Raises:
            DataError: the table is damaged, has a faulty line and the scan says `fail`, has fewer than four scores, or
                a source comes back after others.
        """
        entries = 0
        for found in self._order.follow(run(self._reader.items(), self._work, self._scan.threads)):
            yield found
            entries += found.raw.lines
            self._scan.progress(found.raw.position, entries)
        self._reader.finish(entries)

    def _work(self, item: Item) -> tuple[SourceLook | None, SourceEntries]:
        read = self._reader(item)
        block = read.block
        sizes = np.diff(block.group_offsets)
        short = (block.source_lengths > 0) & (block.source_lengths <= self._longest)
        rows = np.flatnonzero(np.repeat(short, sizes) & ~block.faulty)
        owners = np.repeat(np.arange(len(sizes)), sizes)[rows]
        _, first = np.unique(owners, return_index=True)
        offsets = np.append(first, len(rows)).astype(np.int64)
        values, weights, counts = _values(read, rows, first, offsets)
        if read.scores:
            # Where the model has no opinion, the entry counts as it is.
            mean = read.scores.similarities[rows].mean(axis=1, dtype=np.float64)
            values *= np.where(read.scores.opinion[rows], np.exp(mean - 1), 1.0)
        heads = rows[first]
        return self._order.look(read.raw, block), SourceEntries(
            read.raw, block.text, block.line_offsets[heads], block.source_ends[heads], weights, offsets,
            block.source_ends[rows] + 3, block.target_ends[rows], values, counts,
            CountTally.of(read.counts, ~block.faulty),
        )  # fmt: skip


def _values(
    read: ReadBlock, rows: Int64Array, first: Int64Array, offsets: Int64Array
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """What entries add to the probabilities of their words; how often each source was seen, and each entry."""
    counts, columns = read.counts.values[rows], read.columns
    direct = columns[rows, 0] if columns.shape[1] else np.zeros(len(rows))
    counted = np.isfinite(counts[:, [OF_SOURCE, OF_PAIR]]).all(axis=1) & (counts[:, OF_SOURCE] > 0)
    discounted = discounted_frequencies(counts[:, OF_PAIR], counts[:, OF_SOURCE])
    values = np.clip(np.where(counted, discounted, direct), 0, 1)
    weights = np.where(counted, counts[:, OF_SOURCE], 1.0)[first]
    return values, weights, np.where(counted, counts[:, OF_PAIR], direct)


@dataclass(frozen=True)
class PairEntry:
    """An entry.

    Attributes:
        source, target: as they read, words with a space between.
        direct, inverse: p(target|source) and p(source|target).
        discounted: both with half a count taken off, where counts are known.
        count: how often it was extracted; None where the table does not say.
        similarity: the mean of both directions; None if nothing is known of it.
    """

    source: str
    target: str
    direct: float
    inverse: float
    discounted: tuple[float, float]
    count: float | None
    similarity: float | None


@dataclass(frozen=True)
class PairFilter:
    """Which entries are taken.

    Attributes:
        longest: words of a side.
        least: either probability, discounted or not.
        count: how often an entry was extracted; entries without a count are taken, too.
        count_use: what needs a joint count of each entry; None if nothing does.
        discounted: whether the probabilities are compared with half a count taken off.
    """

    longest: int
    least: float
    count: float = 0
    count_use: CountUse | None = None
    discounted: bool = True


def read_pairs(
    source: Input, scan: TableScan, chosen: PairFilter, similarities: SimilaritySource | None = None, both: bool = True
) -> Iterator[tuple[RawBlock, list[PairEntry], CountTally]]:
    """The entries that a filter takes, block by block, with a tally of the counts of each block.

    Args:
        source: the table, at its beginning; in any order.
        scan: how it is read.
        chosen: the filter.
        similarities: what else is known of the entries.
        both: whether both probabilities must be high enough; else one of them.

    Raises:
        DataError: the table is damaged, has a faulty line and the scan says `fail`, has fewer than four scores, or
            lacks a count that is needed.
    """

    def columns(scores: int) -> tuple[int, ...]:
        require_trained_scores(source.name, scores, 1)
        return (INVERSE_COLUMN, DIRECT_COLUMN) if scores > DIRECT_COLUMN else ()

    reader = EntryReader(source, scan, similarities, columns=columns)

    def work(item: Item) -> tuple[RawBlock, list[PairEntry], CountTally]:
        read = reader(item)
        block = read.block
        tally = CountTally.of(read.counts, ~block.faulty)
        if chosen.count_use:
            read.check_counts(source.name, chosen.count_use)
        if not read.columns.shape[1]:
            return read.raw, [], tally
        sizes = np.diff(block.group_offsets)
        short = np.repeat((block.source_lengths > 0) & (block.source_lengths <= chosen.longest), sizes)
        counts = read.counts.values
        known: Mask = np.logical_and(np.isfinite(counts).all(axis=1), (counts[:, :OF_PAIR] > 0).all(axis=1))
        plain = np.clip(read.columns[:, ::-1], 0, 1)
        taken = discounted_frequencies(counts[:, [OF_PAIR]], counts[:, [OF_SOURCE, OF_TARGET]])
        less = np.where(known[:, None], np.clip(taken, 0, 1), plain)
        enough = (less if chosen.discounted else plain) >= chosen.least
        good = short & ~block.faulty & (enough.all(axis=1) if both else enough.any(axis=1))
        good &= ~known | (counts[:, OF_PAIR] >= chosen.count)
        found = []
        for row in np.flatnonzero(good).tolist():
            line, end = int(block.line_offsets[row]), int(block.source_ends[row])
            words = phrase_text(block.text[end + 3 : block.target_ends[row]].tobytes())
            if not words or words.count(" ") >= chosen.longest:
                continue
            similarity = None
            if read.scores and read.scores.opinion[row]:
                similarity = float(read.scores.similarities[row].mean(dtype=np.float64))
            found.append(
                PairEntry(
                    phrase_text(block.text[line:end].tobytes()), words, float(plain[row, 0]), float(plain[row, 1]),
                    (float(less[row, 0]), float(less[row, 1])), float(counts[row, OF_PAIR]) if known[row] else None,
                    similarity,
                )
            )  # fmt: skip
        return read.raw, found, tally

    entries = 0
    for raw, found, tally in run(reader.items(), work, scan.threads):
        yield raw, found, tally
        entries += raw.lines
        scan.progress(raw.position, entries)
    reader.finish(entries)
