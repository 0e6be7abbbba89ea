"""The filters of Moses: filter-pt (best entries of each source, significance test), and threshold-filter.perl.

See contrib/sigtest-filter/filter-pt.cpp in mosesdecoder.  Unlike there, lines keep their order, no source group is
split at the border of a block, and no line is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import lines_with_fields, selected_lines
from moses_compat.lines.numbers import DIRECT_COLUMN, OK
from moses_compat.measures.pair_test import CorpusCheck, PairTest, PairTestResults
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import LineScan, TableParser, scan_lines
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.pruning.protection import best_of_groups

# The number of fields that Moses reads; it ignores everything after the seventh.
MOSES_FIELDS = 7

# p(f|e) and p(e|f): the columns for a threshold without a column.
_BOTH_DIRECTIONS = (0, 2)
# A parsed number may be off by one bit; a score that is written like its threshold must not count as below it.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Significance:
    """Settings of the significance test.

    Attributes:
        test: the test itself.
        threshold: entries with a smaller -ln p are removed.
        append_counts: whether to append a field ` ||| cfe cf ce`.
        append_values: whether to append a field ` ||| -ln p`.
        force: continue if the corpora do not match the table.

    Raises:
        ValueError: the threshold is negative or NaN.
    """

    test: PairTest
    threshold: float = 0.0
    append_counts: bool = False
    append_values: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        if not self.threshold >= 0:
            raise ValueError("the threshold of significance must be 0 or more")

    @property
    def appends(self) -> bool:
        """Whether fields are appended to lines."""
        return self.append_counts or self.append_values


@dataclass
class FilterCounts:
    """Numbers of lines of a run.

    Attributes:
        entries: read entries.
        kept: written entries.
        not_best: entries that were removed because others of their source are better.
        insignificant: entries that were removed by the test.
        tested: entries that were tested.
        absent_sources, absent_targets: tested entries with a side that does not occur in its corpus.
        wordless: entries that were kept without a test, because a side has no word.
        malformed_kept, malformed_skipped: malformed lines that were kept or skipped.
        fields: number of fields of the first entry, 0 if there is none.
    """

    entries: int = 0
    kept: int = 0
    not_best: int = 0
    insignificant: int = 0
    tested: int = 0
    absent_sources: int = 0
    absent_targets: int = 0
    wordless: int = 0
    malformed_kept: int = 0
    malformed_skipped: int = 0
    fields: int = 0

    def __iadd__(self, other: FilterCounts) -> FilterCounts:
        first = self.fields or other.fields
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        self.fields = first
        return self


def filter_table(
    source: Input,
    output: Output,
    scan: TableScan,
    *,
    top: int = 0,
    column: int = DIRECT_COLUMN,
    significance: Significance | None = None,
) -> FilterCounts:
    """Write the entries that are among the best of their source and significant, in input order.

    Args:
        scan: settings for reading the table.
        top: number of entries of each source to keep, those with the highest score in `column`, and among equal scores
            the first; 0 keeps all.  Applied before the test.
        column: 0-based score column.
        significance: the test; none by default.  It never removes an entry with a side without words.

    Raises:
        DataError: the table is damaged, has a malformed line and `scan.on_error` is `fail`, or has no such column; or,
            with `top`, the entries of a source are not contiguous, unless `scan.force` is set.
        CorpusMismatchError: more than half of the first entries do not occur in the corpora.
    """
    work = _BlockFilter(source, output, scan, top, column, significance, SourceOrder(source, scan, top > 0))
    trial = CorpusCheck(source.name, significance.test) if significance and not significance.force else None
    total = FilterCounts()
    held: list[bytes] = []
    results = run(scan.raw_blocks(source), work, scan.threads)
    for raw, data, counts, tested in work.order.follow(results):
        total += counts
        held.append(data)
        if trial and tested:
            trial.add(tested)
        # Nothing is written until the corpora are known to match.
        if not trial or trial.passed:
            for piece in held:
                output.write(piece)
            held = []
        scan.progress(raw.position, total.entries)
    if trial:
        trial.check()
    for piece in held:
        output.write(piece)
    return total


@dataclass(frozen=True)
class _BlockFilter:
    """Filter for one block; may be called by several threads."""

    source: Input
    output: Output
    scan: TableScan
    top: int
    column: int
    significance: Significance | None
    order: SourceOrder

    def __call__(
        self, raw: RawBlock
    ) -> tuple[SourceLook | None, tuple[RawBlock, bytes, FilterCounts, PairTestResults | None]]:
        if self.top and 0 <= raw.scores <= self.column:
            message = f"column {self.column} (from 0) was requested, but entries have {raw.scores} scores"
            raise DataError(self.source.name, message, raw.first_entry + 1)
        scan = scan_lines(raw.text, raw.scores, (self.column,) if self.top else (), raw.line_offsets)
        malformed = scan.faults != OK
        faults = TableParser(scores=raw.scores).faults(scan, raw.first_entry)
        passed = self.scan.passes(self.source.name, malformed, faults)
        best = ~malformed
        if self.top:
            best = best_of_groups(scan.group_offsets, scan.columns[:, 0], self.top, best)
        rows = np.flatnonzero(best)
        tested = None
        if self.significance:
            starts, middles = scan.line_offsets[:-1][rows], scan.source_ends[rows]
            tested = self.significance.test(raw.text, starts, middles, scan.target_ends[rows])
        fails = np.zeros(raw.lines, np.bool_)
        if tested and self.significance:
            fails[rows] = (tested.values < self.significance.threshold) & ~tested.wordless
        keep = (best & ~fails) | (malformed & passed)
        counts = FilterCounts(
            entries=raw.lines,
            kept=int(keep.sum()),
            not_best=int((~best & ~malformed).sum()),
            insignificant=int(fails.sum()),
            malformed_kept=int((malformed & passed).sum()),
            malformed_skipped=int((malformed & ~passed).sum()),
            fields=_count_fields(raw.text, scan),
        )
        if tested:
            counts.tested = int((~tested.wordless).sum())
            counts.absent_sources = int(tested.absent_sources.sum())
            counts.absent_targets = int(tested.absent_targets.sum())
            counts.wordless = int(tested.wordless.sum())
        return self.order.look(raw, scan), (raw, self._encode(raw.text, scan, keep, rows, tested), counts, tested)

    def _encode(
        self, text: ByteArray, scan: LineScan, keep: Mask, rows: Int64Array, tested: PairTestResults | None
    ) -> bytes:
        significance = self.significance
        if tested and significance and significance.appends:
            counts = np.zeros((len(keep), 3 * significance.append_counts), np.int64)
            values = np.zeros((len(keep), int(significance.append_values)), np.float64)
            if significance.append_counts:
                counts[rows] = tested.counts
            if significance.append_values:
                values[rows, 0] = tested.values
            written = lines_with_fields(text, scan.line_offsets, scan.faults != OK, keep, counts, values)
        else:
            written = selected_lines(text, scan.line_offsets, keep)
        return self.output.encode(written)


def _count_fields(text: ByteArray, scan: LineScan) -> int:
    """Return the number of fields of the first entry; 0 if there is none."""
    good = np.flatnonzero(scan.faults == OK)
    if not len(good):
        return 0
    line: bytes = text[scan.line_offsets[good[0]] : scan.line_offsets[good[0] + 1]].tobytes()
    return line.count(b"|||") + 1


def parse_thresholds(text: str) -> dict[int, float]:
    """Parse `0.0001` (columns 0 and 2) or `2:0.0001,3:0.1` to a dict from 0-based score column to threshold.

    Raises:
        ValueError: the text is malformed, or a threshold is 0 or not finite.
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
    """Lines read, lines written, and lines below a threshold that were kept as the only ones of their source word."""

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
    """Write the entries without a score below its threshold, byte-identical and in input order.

    Args:
        thresholds: 0-based score column -> threshold.
        scan: settings for reading the table.
        keep_words: if no entry of a one-word source would be left, keep the one with the highest minimum over the
            columns of (score - threshold) / |threshold|; a word without an entry is unknown to the decoder.

    Raises:
        DataError: the table is damaged, has a malformed line and `scan.on_error` is `fail`, or has no such column; or,
            with `keep_words`, the entries of a source are not contiguous, unless `scan.force` is set.
    """
    columns = sorted(thresholds)
    limits = np.array([thresholds[column] for column in columns])
    scales = np.where(limits == 0, 1, np.abs(limits))
    order = SourceOrder(source, scan, needed=keep_words)

    def work(raw: RawBlock) -> tuple[SourceLook | None, tuple[RawBlock, bytes, ThresholdCounts]]:
        if 0 <= raw.scores <= columns[-1]:
            message = f"column {columns[-1]} (from 0) was requested, but entries have {raw.scores} scores"
            raise DataError(source.name, message, raw.first_entry + 1)
        block, faults = TableParser(scores=raw.scores, columns=columns)(raw.first_entry, raw.text, raw.line_offsets)
        keep = scan.passes(source.name, block.malformed, faults)
        passes = (block.columns >= limits - np.abs(limits) * _TOLERANCE).all(axis=1)
        protected = 0
        if keep_words:
            saved = _last_of_words(block, passes, ((block.columns - limits) / scales).min(axis=1))
            protected = int(saved.sum())
            passes |= saved
        keep &= passes | block.malformed
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
    """Return a mask, shape (N,), of the best entry of each one-word source without a passing entry."""
    good = passes & ~block.malformed
    starts = block.group_offsets[:-1]
    lost = np.add.reduceat(good.astype(np.int64), starts) == 0 if len(starts) else np.zeros(0, np.bool_)
    lost &= block.source_lengths == 1
    candidates = np.repeat(lost, np.diff(block.group_offsets)) & ~block.malformed
    return best_of_groups(block.group_offsets, keys, 1, candidates)
