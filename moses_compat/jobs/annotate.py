"""Append columns to a phrase table: similarities, and probabilities by forced decoding and by smoothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import (
    DIRECT_COLUMN,
    INVERSE_COLUMN,
    SOFTMAX,
    annotated_lines,
    check_trained_scores,
    least_probability,
    scale_logarithms,
    scale_similarities,
)
from moses_compat.measures.entry_reader import EntryReader, ReadBlock
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.measures.smoothed import SmoothedProbabilities
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.finished_blocks import follow_blocks
from moses_compat.tables.parser import LineScan
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.errors import DataError
from phrasetool.models.fit import ModelFit
from phrasetool.phrases import ByteArray, DoubleArray
from phrasetool.scoring.candidate_softmax import candidate_probabilities
from phrasetool.scoring.forced_probabilities import forced_probabilities

if TYPE_CHECKING:
    from phrasetool.text_encoders.encoder_fit import EncoderFit

Made = TypeVar("Made")

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
        too_long: entries of which a side has more words than a translator takes.
        fits: how well each model fits the table, where a sample of it could tell; and the encoder.
    """

    entries: int = 0
    without_opinion: int = 0
    faulty: int = 0
    scores: int = -1
    used: int = 0
    too_long: int = 0
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
        similarities: two columns each are appended in this order, source-to-target first; one of a translator.
        scan: how the table is read.
        forced: the pairs that forced decoding used; p(e|f) and p(f|e) by their counts (see `forced_probabilities`) are
            appended behind the similarities.
        smoothed: of this table; p(e|f) and p(f|e) are the last columns.
        scale: how a similarity is written; see `insert_scores`.  Probabilities of translators are written as they are,
            unless it is `softmax`.

    Raises:
        DataError: the table is damaged, or has a faulty line and `scan.on_error` is `fail`; or, with a softmax, a
            source comes back after others; or, with `forced`, it has fewer than the four scores of Moses' training; or,
            with `smoothed`, it is not the table that was counted; or no entry is among the pairs of forced decoding.
        ValueError: there is nothing to append.
    """
    if not similarities and forced is None and smoothed is None:
        raise ValueError("no similarities, no pairs of forced decoding, no smoothing: there is nothing to append")
    columns = (DIRECT_COLUMN, INVERSE_COLUMN) if forced else ()
    # A block is parsed once for each source of similarities, in its words.
    readers = [
        EntryReader(source, scan, similar, columns=lambda scores: columns) for similar in similarities or (None,)
    ]

    by_source = bool(similarities) and scale == SOFTMAX
    order = SourceOrder(source, scan, by_source)

    def work(item: tuple[RawBlock, list[Any]]) -> tuple[SourceLook | None, tuple[bytes, AnnotateCounts]]:
        raw, taken = item
        if forced:
            check_trained_scores(source.name, raw.scores, raw.first_entry)
        reads = [reader((raw, part)) for reader, part in zip(readers, taken, strict=True)]
        text, counts = _annotated(reads, forced, smoothed, scale)
        return order.look(raw, reads[0].block), (output.encode(text), counts)

    total = AnnotateCounts()
    raws = raw_blocks(source, scan.block_bytes, scan.max_line, whole_groups=by_source)
    for reader in readers:
        raws = reader.look_at(raws)
    items = ((raw, [reader.take(raw) for reader in readers]) for raw in raws)

    def pass_over(raw: RawBlock, lines: LineScan) -> None:
        for reader in readers:
            reader.pass_over(raw, lines)

    made = follow_blocks("annotate", items, work, order, scan, pass_over)
    for raw, (data, counts) in _held(made, lambda: all(reader.judged for reader in readers)):
        output.write(data)
        total.add(counts)
        scan.progress(raw.position, total.entries)
    for reader in readers:
        reader.finish(total.entries)
    if forced and total.entries > total.faulty and not total.used:
        scan.refuse(DataError(forced.path, f"none of its pairs is in {source.name}", remedy="go on"))
    return total


def _held(made: Iterable[Made], judged: Callable[[], bool]) -> Iterator[Made]:
    """What is made of blocks, the first of it only when all models are known to fit the table."""
    kept: list[Made] = []
    for one in made:
        kept.append(one)
        if judged():
            yield from kept
            kept.clear()
    yield from kept


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
    written = [_written(read, scale) for read in reads if read.scores]
    columns = [values for values, _ in written]
    exact = [np.full(values.shape[1], significant) for values, significant in written]
    if first.scores:
        counts.without_opinion = int((~first.scores.opinion & ~block.faulty).sum())
    if forced:
        used = forced.look_up(block.text, block.line_offsets, ~block.faulty)
        counts.used = int((used[:, 0] > 0).sum())
        columns.append(forced_probabilities(used, *first.columns.T))
    if smoothed:
        columns.append(smoothed(block))
    exact.extend(np.ones(values.shape[1], np.bool_) for values in columns[len(written) :])
    return annotated_lines(block, np.hstack(columns), first.passes, np.concatenate(exact)), counts


def _written(read: ReadBlock, scale: str) -> tuple[DoubleArray, bool]:
    """The columns of one source of similarities, and whether they have six significant digits."""
    assert read.scores is not None
    values, block = read.scores.similarities, read.block
    if scale == SOFTMAX:
        return least_probability(candidate_probabilities(values, block.group_offsets, block.faulty)), True
    if read.scores.logarithms:
        return scale_logarithms(values), True
    return scale_similarities(values, scale), False
