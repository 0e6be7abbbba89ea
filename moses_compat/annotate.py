"""Append similarity columns to a phrase table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moses_compat.score_columns import annotated_lines, scale_similarities
from moses_compat.streams import Input, Output
from moses_compat.table_blocks import BLOCK_BYTES, FaultPolicy, Progress, RawBlock, raw_blocks
from moses_compat.table_text import TableParser
from phrasetool.models.brae import Brae
from phrasetool.pipeline import run


@dataclass
class AnnotateCounts:
    """What an annotation run did.

    Attributes:
        entries: lines read.
        without_opinion: entries of which, for the first model, a side has no known word.
        faulty: lines that could not be read.
        scores: score columns of an entry before, -1 for a table without entries.
    """

    entries: int = 0
    without_opinion: int = 0
    faulty: int = 0
    scores: int = -1


def annotate_table(
    source: Input,
    output: Output,
    models: Sequence[Brae],
    *,
    scale: str = "exp",
    on_error: str = "fail",
    threads: int = 1,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = lambda position, entries: None,
) -> AnnotateCounts:
    """Write `source` to `output` with the similarity columns of every model appended to its score field.

    Args:
        models: their columns are appended in this order, source-to-target first.
        scale: how a similarity is written; see `score_columns`.
        on_error: `fail`, `skip` or `keep`, for lines that are not entries.
        progress: called with the bytes of the file consumed and the entries written so far.

    Raises:
        DataError: the table is damaged, or has a faulty line and `on_error` is `fail`.
    """
    policy = FaultPolicy(source.name, on_error)
    scorers = [(model, model.scorer()) for model in models]

    def work(raw: RawBlock) -> tuple[RawBlock, bytes, AnnotateCounts]:
        columns = []
        for model, scorer in scorers:
            parser = TableParser(model.source_vocabulary, model.target_vocabulary, raw.scores)
            block, faults = parser(raw.index, raw.first_entry, raw.text)
            keep = policy.keep_mask(block, faults)
            scores = scorer.score(block)
            columns.append(scale_similarities(scores.similarities, scale))
            if len(columns) == 1:
                silent = int((~scores.opinion & ~block.faulty).sum())
        text = annotated_lines(block, np.hstack(columns), keep)
        counts = AnnotateCounts(len(block), silent, len(faults), raw.scores)
        return raw, output.encode(text), counts

    total = AnnotateCounts()
    for raw, data, counts in run(raw_blocks(source, block_bytes), work, threads):
        output.write(data)
        total.entries += counts.entries
        total.without_opinion += counts.without_opinion
        total.faulty += counts.faulty
        total.scores = counts.scores
        progress(raw.position, total.entries)
    return total
