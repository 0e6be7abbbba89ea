"""Drop the entries of a phrase table that score too low, as Moses' threshold-filter.perl does."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import selected_lines
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.errors import DataError
from phrasetool.phrases import EntryBlock
from phrasetool.pipeline import run
from phrasetool.pruning.protection import best_of_groups

# p(f|e) and p(e|f): the columns of a bare threshold.
_BOTH_DIRECTIONS = (0, 2)
# Reading a number may be one bit off; a score that reads like its threshold is not below it.
_TOLERANCE = 1e-12


def parse_thresholds(text: str) -> dict[int, float]:
    """0-based score column -> its threshold, from `0.0001` (columns 0 and 2) or `2:0.0001,3:0.1`.

    Raises:
        ValueError: it is neither, or a threshold is 0 or not finite.
    """
    if re.fullmatch(r"\d+\.?\d*|\.\d+", text):
        thresholds = dict.fromkeys(_BOTH_DIRECTIONS, float(text))
    else:
        thresholds = {}
        for part in text.split(","):
            column, colon, value = part.partition(":")
            if not colon or not re.fullmatch("[0-9]{1,9}", column):
                raise ValueError(f"{part!r} is not COLUMN:THRESHOLD, as in 2:0.0001")
            if int(column) in thresholds:
                raise ValueError(f"column {column} has two thresholds")
            thresholds[int(column)] = float(value)
    for threshold in thresholds.values():
        if threshold == 0 or not math.isfinite(threshold):
            raise ValueError(f"the threshold {threshold:g} filters nothing or everything")
    return thresholds


@dataclass
class ThresholdCounts:
    """Lines read, lines written, and lines below a threshold that were kept as the only ones of their word."""

    entries: int = 0
    kept: int = 0
    protected: int = 0


def threshold_table(
    source: Input,
    output: Output,
    thresholds: Mapping[int, float],
    scan: TableScan,
    *,
    keep_words: bool = False,
) -> ThresholdCounts:
    """Write the entries of which no listed score is below its threshold, byte for byte and in their order.

    Args:
        thresholds: 0-based score column -> threshold.
        scan: how the table is read.
        keep_words: where no entry of a one-word source would be left, keep the one whose lowest score, relative to its
            threshold, is the highest; a word without an entry is unknown to the decoder.

    Raises:
        DataError: the table is damaged, has a faulty line and `scan.on_error` is `fail`, or has no such column; or,
            with `keep_words`, a source comes back after others, unless `scan.force` is set.
    """
    columns = sorted(thresholds)
    limits = np.array([thresholds[column] for column in columns])
    order = SourceOrder(source, scan, needed=keep_words)

    def work(raw: RawBlock) -> tuple[SourceLook | None, tuple[RawBlock, bytes, ThresholdCounts]]:
        if 0 <= raw.scores <= columns[-1]:
            message = f"column {columns[-1]} (from 0) was asked for, but entries have {raw.scores} scores"
            raise DataError(source.name, message, raw.first_entry + 1)
        block, faults = TableParser(scores=raw.scores, columns=columns)(raw.first_entry, raw.text, raw.line_offsets)
        keep = scan.passes(source.name, block.faulty, faults)
        passes = (block.columns >= limits - np.abs(limits) * _TOLERANCE).all(axis=1)
        protected = 0
        if keep_words:
            saved = _last_of_words(block, passes, (block.columns / limits).min(axis=1))
            protected = int(saved.sum())
            passes |= saved
        keep &= passes | block.faulty
        text = selected_lines(block.text, block.line_offsets, keep)
        counts = ThresholdCounts(len(block), int(keep.sum()), protected)
        return order.look(raw, block), (raw, output.encode(text), counts)

    total = ThresholdCounts()
    raws = raw_blocks(source, scan.block_bytes, scan.max_line, whole_groups=keep_words)
    for raw, data, counts in order.follow(run(raws, work, scan.threads)):
        output.write(data)
        total.entries += counts.entries
        total.kept += counts.kept
        total.protected += counts.protected
        scan.progress(raw.position, total.entries)
    return total


def _last_of_words(
    block: EntryBlock, passes: npt.NDArray[np.bool_], keys: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """The best entry of each one-word source of which none passes; bool, shape (N,)."""
    good = passes & ~block.faulty
    starts = block.group_offsets[:-1]
    lost = np.add.reduceat(good.astype(np.int64), starts) == 0 if len(starts) else np.zeros(0, np.bool_)
    lost &= block.source_lengths == 1
    candidates = np.repeat(lost, np.diff(block.group_offsets)) & ~block.faulty
    return best_of_groups(block.group_offsets, keys, 1, candidates)
