"""From the entries of a table to the candidates of its source phrases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE, CountTally
from moses_compat.lines.phrase_text import phrase_text
from moses_compat.lines.trained_scores import DIRECT, require_trained_scores
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.export.target_candidates import discounted_frequencies
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array
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
        return (DIRECT,) if scores > DIRECT else ()

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
