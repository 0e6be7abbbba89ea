"""Append columns to a phrase table: similarities, and probabilities by forced decoding and by smoothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import (
    DIRECT_COLUMN,
    INVERSE_COLUMN,
    annotated_lines,
    check_trained_scores,
    scale_similarities,
)
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.measures.smoothed import SmoothedProbabilities
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from phrasetool.phrases import ByteArray, DoubleArray
from phrasetool.pipeline import run
from phrasetool.scoring.forced_probabilities import forced_probabilities

# The columns that a source of similarities, forced decoding and smoothing add.
MODEL_COLUMNS = FORCED_COLUMNS = SMOOTHED_COLUMNS = 2


@dataclass
class AnnotateCounts:
    """What an annotation run did.

    Attributes:
        entries: lines read.
        without_opinion: entries of which, for the first source of similarities, a side has no known word.
        faulty: lines that could not be read.
        scores: score columns of an entry before, -1 for a table without entries.
        used: entries that forced decoding used.
    """

    entries: int = 0
    without_opinion: int = 0
    faulty: int = 0
    scores: int = -1
    used: int = 0

    def add(self, other: AnnotateCounts) -> None:
        """Add the counts of the block that follows."""
        self.entries += other.entries
        self.without_opinion += other.without_opinion
        self.faulty += other.faulty
        self.scores = other.scores
        self.used += other.used


def annotate_table(
    source: Input,
    output: Output,
    similarities: Sequence[SimilaritySource],
    scan: TableScan,
    *,
    forced: PairUses | None = None,
    smoothed: SmoothedProbabilities | None = None,
    scale: str = "exp",
) -> AnnotateCounts:
    """Write `source` to `output` with more columns in its score field: similarities, of forced decoding, smoothed.

    Args:
        similarities: two columns each are appended in this order, source-to-target first.
        scan: how the table is read.
        forced: the pairs that forced decoding used; p(e|f) and p(f|e) by their counts (see `forced_probabilities`) are
            appended behind the similarities.
        smoothed: of this table; p(e|f) and p(f|e) are the last columns.
        scale: how a similarity is written; see `insert_scores`.

    Raises:
        DataError: the table is damaged, or has a faulty line and `scan.on_error` is `fail`; or, with `forced`, it has
            fewer than the four scores of Moses' training; or, with `smoothed`, it is not the table that was counted.
        ValueError: there is nothing to append.
    """
    annotator = _Annotator(source, scan, similarities, forced, smoothed, scale)

    def work(item: _Item) -> tuple[RawBlock, bytes, AnnotateCounts]:
        text, counts = annotator(item)
        return item[0], output.encode(text), counts

    total = AnnotateCounts()
    for raw, data, counts in run(annotator.items(), work, scan.threads):
        output.write(data)
        total.add(counts)
        scan.progress(raw.position, total.entries)
    annotator.finish(total.entries)
    return total


# A raw block, and what belongs to it of each source of similarities.
_Item = tuple[RawBlock, list[Any]]


class _Annotator:
    """Annotates one block after another; threads may call it at the same time."""

    def __init__(
        self,
        source: Input,
        scan: TableScan,
        similarities: Sequence[SimilaritySource],
        forced: PairUses | None,
        smoothed: SmoothedProbabilities | None,
        scale: str,
    ) -> None:
        if not similarities and forced is None and smoothed is None:
            raise ValueError("no similarities, no pairs of forced decoding, no smoothing: there is nothing to append")
        self._source, self._scan = source, scan
        # A block is parsed once for each source of similarities, in its words.
        self._readers = [
            EntryReader(source, scan, similar, columns=self._columns) for similar in similarities or (None,)
        ]
        self._similar = MODEL_COLUMNS * len(similarities)
        self._forced = forced
        self._smoothed = smoothed
        self._scale = scale

    def _columns(self, scores: int) -> Sequence[int]:
        """p(e|f) and p(f|e), where they are needed."""
        return (DIRECT_COLUMN, INVERSE_COLUMN) if self._forced else ()

    def items(self) -> Iterator[_Item]:
        """The blocks, in order."""
        for raw in raw_blocks(self._source, self._scan.block_bytes):
            yield raw, [reader.take(raw) for reader in self._readers]

    def finish(self, entries: int) -> None:
        """Make sure that no source of similarities has anything left over."""
        for reader in self._readers:
            reader.finish(entries)

    def __call__(self, item: _Item) -> tuple[ByteArray, AnnotateCounts]:
        """The text of a block with more columns, and what was done."""
        raw, taken = item
        if self._forced:
            check_trained_scores(self._source.name, raw.scores, raw.first_entry)
        reads = [reader((raw, part)) for reader, part in zip(self._readers, taken, strict=True)]
        first = reads[0]
        block = first.block
        counts = AnnotateCounts(raw.lines, faulty=first.faults, scores=raw.scores)
        columns: list[DoubleArray] = []
        for read in reads:
            if read.scores:
                columns.append(scale_similarities(read.scores.similarities, self._scale))
        if first.scores:
            counts.without_opinion = int((~first.scores.opinion & ~block.faulty).sum())
        if self._forced:
            used = self._forced.look_up(block.text, block.line_offsets, ~block.faulty)
            counts.used = int((used[:, 0] > 0).sum())
            columns.append(forced_probabilities(used, *first.columns.T))
        if self._smoothed:
            columns.append(self._smoothed(block))
        appended = np.hstack(columns)
        return annotated_lines(block, appended, first.passes, appended.shape[1] - self._similar), counts
