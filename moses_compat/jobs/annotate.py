"""Append columns to a phrase table: similarities, and probabilities by forced decoding and by smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import (
    DIRECT_COLUMN,
    INVERSE_COLUMN,
    annotated_lines,
    check_trained_scores,
    scale_similarities,
)
from moses_compat.measures.entry_reader import EntryReader, ReadBlock
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.measures.smoothed import SmoothedProbabilities
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from phrasetool.models.fit import ModelFit
from phrasetool.phrases import ByteArray
from phrasetool.pipeline import run
from phrasetool.scoring.forced_probabilities import forced_probabilities

if TYPE_CHECKING:
    from phrasetool.text_encoders.encoder_fit import EncoderFit

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
        fits: how well each model fits the table, where a sample of it could tell; and the encoder.
    """

    entries: int = 0
    without_opinion: int = 0
    faulty: int = 0
    scores: int = -1
    used: int = 0
    fits: list[ModelFit | EncoderFit] = field(default_factory=list)

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
    if not similarities and forced is None and smoothed is None:
        raise ValueError("no similarities, no pairs of forced decoding, no smoothing: there is nothing to append")
    columns = (DIRECT_COLUMN, INVERSE_COLUMN) if forced else ()
    # A block is parsed once for each source of similarities, in its words.
    readers = [
        EntryReader(source, scan, similar, columns=lambda scores: columns) for similar in similarities or (None,)
    ]

    def work(item: tuple[RawBlock, list[Any]]) -> tuple[RawBlock, bytes, AnnotateCounts]:
        raw, taken = item
        if forced:
            check_trained_scores(source.name, raw.scores, raw.first_entry)
        reads = [reader((raw, part)) for reader, part in zip(readers, taken, strict=True)]
        text, counts = _annotated(reads, forced, smoothed, scale)
        return raw, output.encode(text), counts

    total = AnnotateCounts()
    raws = raw_blocks(source, scan.block_bytes)
    for reader in readers:
        raws = reader.look_at(raws)
    items = ((raw, [reader.take(raw) for reader in readers]) for raw in raws)
    for raw, data, counts in run(items, work, scan.threads):
        output.write(data)
        total.add(counts)
        scan.progress(raw.position, total.entries)
    for reader in readers:
        reader.finish(total.entries)
    return total


def _annotated(
    reads: Sequence[ReadBlock], forced: PairUses | None, smoothed: SmoothedProbabilities | None, scale: str
) -> tuple[ByteArray, AnnotateCounts]:
    """The text of a block with more columns, and what was done.

    Args:
        reads: the block, as each source of similarities reads it.
    """
    first = reads[0]
    block = first.block
    counts = AnnotateCounts(len(block), faulty=first.faults, scores=first.raw.scores)
    columns = [scale_similarities(read.scores.similarities, scale) for read in reads if read.scores]
    similar = MODEL_COLUMNS * len(columns)
    if first.scores:
        counts.without_opinion = int((~first.scores.opinion & ~block.faulty).sum())
    if forced:
        used = forced.look_up(block.text, block.line_offsets, ~block.faulty)
        counts.used = int((used[:, 0] > 0).sum())
        columns.append(forced_probabilities(used, *first.columns.T))
    if smoothed:
        columns.append(smoothed(block))
    appended = np.hstack(columns)
    return annotated_lines(block, appended, first.passes, appended.shape[1] - similar), counts
