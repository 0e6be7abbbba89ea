"""Append columns to a phrase table: similarities of models, and probabilities by forced decoding and by smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import (
    DIRECT_COLUMN,
    INVERSE_COLUMN,
    annotated_lines,
    check_trained_scores,
    scale_similarities,
)
from moses_compat.measures.pair_uses import PairUses
from moses_compat.measures.smoothed import SmoothedProbabilities
from moses_compat.tables.blocks import BLOCK_BYTES, FaultPolicy, Progress, RawBlock, raw_blocks
from moses_compat.tables.parser import Fault, TableParser
from phrasetool.models.bilingual import BilingualModel
from phrasetool.phrases import ByteArray, EntryBlock
from phrasetool.pipeline import run
from phrasetool.scoring.forced_probabilities import forced_probabilities

# The columns that a model, forced decoding and smoothing add.
MODEL_COLUMNS = FORCED_COLUMNS = SMOOTHED_COLUMNS = 2


@dataclass
class AnnotateCounts:
    """What an annotation run did.

    Attributes:
        entries: lines read.
        without_opinion: entries of which, for the first model, a side has no known word.
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
    models: Sequence[BilingualModel],
    *,
    forced: PairUses | None = None,
    smoothed: SmoothedProbabilities | None = None,
    scale: str = "exp",
    on_error: str = "fail",
    threads: int = 1,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = lambda position, entries: None,
) -> AnnotateCounts:
    """Write `source` to `output` with more columns in its score field: of every model, of forced decoding, smoothed.

    Args:
        models: their similarities are appended in this order, source-to-target first.
        forced: the pairs that forced decoding used; p(e|f) and p(f|e) by their counts (see `scoring.forced`) are
            appended behind the similarities.
        smoothed: of this table; p(e|f) and p(f|e) are the last columns.
        scale: how a similarity is written; see `score_columns`.
        on_error: `fail`, `skip` or `keep`, for lines that are not entries.
        progress: called with the bytes of the file consumed and the entries written so far.

    Raises:
        DataError: the table is damaged, or has a faulty line and `on_error` is `fail`; or, with `forced`, it has fewer
            than the four scores of Moses' training; or, with `smoothed`, it is not the table that was counted.
        ValueError: there is nothing to append.
    """
    annotator = _Annotator(source.name, models, forced, smoothed, scale, on_error)

    def work(raw: RawBlock) -> tuple[RawBlock, bytes, AnnotateCounts]:
        text, counts = annotator(raw)
        return raw, output.encode(text), counts

    total = AnnotateCounts()
    for raw, data, counts in run(raw_blocks(source, block_bytes), work, threads):
        output.write(data)
        total.add(counts)
        progress(raw.position, total.entries)
    return total


class _Annotator:
    """Annotates one block after another; threads may call it at the same time."""

    def __init__(
        self,
        name: str,
        models: Sequence[BilingualModel],
        forced: PairUses | None,
        smoothed: SmoothedProbabilities | None,
        scale: str,
        on_error: str,
    ) -> None:
        if not models and forced is None and smoothed is None:
            raise ValueError("no models, no pairs of forced decoding, no smoothing: there is nothing to append")
        self._policy = FaultPolicy(name, on_error)
        self._scorers = [(model, model.scorer()) for model in models]
        self._forced = forced
        self._smoothed = smoothed
        self._scale = scale

    def __call__(self, raw: RawBlock) -> tuple[ByteArray, AnnotateCounts]:
        """The text of a block with more columns, and what was done."""
        columns: list[npt.NDArray[np.float64]] = []
        counts = AnnotateCounts(raw.lines, scores=raw.scores)
        for model, scorer in self._scorers:
            block, faults = self._parse(raw, model)
            scores = scorer.score(block)
            if not columns:
                counts.without_opinion = int((~scores.opinion & ~block.faulty).sum())
            columns.append(scale_similarities(scores.similarities, self._scale))
        if not columns:
            block, faults = self._parse(raw)
        keep = self._policy.keep_mask(block, faults)
        counts.faulty = len(faults)
        similarities = MODEL_COLUMNS * len(columns)
        if self._forced:
            used = self._forced.look_up(block.text, block.line_offsets, ~block.faulty)
            counts.used = int((used[:, 0] > 0).sum())
            columns.append(forced_probabilities(used, *block.columns.T))
        if self._smoothed:
            columns.append(self._smoothed(block))
        appended = np.hstack(columns)
        return annotated_lines(block, appended, keep, appended.shape[1] - similarities), counts

    def _parse(self, raw: RawBlock, model: BilingualModel | None = None) -> tuple[EntryBlock, list[Fault]]:
        """A block in the words of a model, with p(e|f) and p(f|e) where they are needed."""
        wanted: tuple[int, ...] = ()
        if self._forced:
            check_trained_scores(self._policy.name, raw.scores, raw.first_entry)
            wanted = (DIRECT_COLUMN, INVERSE_COLUMN)
        source, target = (model.source_vocabulary, model.target_vocabulary) if model else (None, None)
        return TableParser(source, target, raw.scores, wanted)(raw.index, raw.first_entry, raw.text)
