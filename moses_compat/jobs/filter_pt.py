"""Filter a phrase table as Moses' filter-pt does: the best entries of each source, and a test of significance.

See contrib/sigtest-filter/filter-pt.cpp in mosesdecoder.  Unlike there, lines stay in their order, no source group is
cut at the border of a block, and no line is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.insert_scores import lines_with_fields, selected_lines
from moses_compat.lines.scores import DIRECT_COLUMN, OK
from moses_compat.measures.pair_test import CorpusCheck, PairTest, Tested
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import LineScan, TableParser, scan_lines
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.pruning.protection import best_of_groups

# The fields that Moses reads; what comes after the seventh, it ignores.
MOSES_FIELDS = 7


@dataclass(frozen=True)
class Significance:
    """The test of significance, and what of it to write.

    Attributes:
        test: the test itself.
        threshold: entries with a smaller -ln p go.
        append_counts: add a field ` ||| cfe cf ce`.
        append_values: add a field ` ||| -ln p`.
        force: go on when the corpora do not match the table.

    Raises:
        ValueError: the threshold is negative or no number.
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
        """Whether lines get more fields."""
        return self.append_counts or self.append_values


@dataclass
class FilterCounts:
    """What a run did, in lines.

    Attributes:
        entries: read.
        kept: written.
        not_best: removed because others of their source are better.
        insignificant: removed by the test.
        tested: that went through the test.
        absent_sources, absent_targets: tested, though that side does not occur in its corpus.
        wordless: kept without a test, because a side has no word.
        faulty_kept, faulty_skipped: lines that could not be read, passed through or left out.
        fields: of the first entry, 0 if there is none.
    """

    entries: int = 0
    kept: int = 0
    not_best: int = 0
    insignificant: int = 0
    tested: int = 0
    absent_sources: int = 0
    absent_targets: int = 0
    wordless: int = 0
    faulty_kept: int = 0
    faulty_skipped: int = 0
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
    """Write the entries that are among the best of their source and significant, in their order.

    Args:
        scan: how the table is read.
        top: keep so many entries of each source, those with the largest score in `column`, ties to the earlier one;
            0 keeps all.  Applied before the test.
        column: 0-based score column.
        significance: the test; none by default.  An entry with a side without words is never removed by it.

    Raises:
        DataError: the table is damaged, has a faulty line and `scan.on_error` is `fail`, or has no such column; or,
            with `top`, a source comes back after others, unless `scan.force` is set.
        CorpusMismatchError: more than half of the first entries do not occur in the corpora.
    """
    work = _BlockFilter(source, output, scan, top, column, significance, SourceOrder(source, scan, top > 0))
    trial = CorpusCheck(source.name, significance.test) if significance and not significance.force else None
    total = FilterCounts()
    held: list[bytes] = []
    done = run(scan.raw_blocks(source), work, scan.threads)
    for raw, data, counts, tested in work.order.follow(done):
        total += counts
        held.append(data)
        if trial and tested:
            trial.add(tested)
        # Nothing is written before it is clear that the corpora match.
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
    """Filters one block; may be called by several threads."""

    source: Input
    output: Output
    scan: TableScan
    top: int
    column: int
    significance: Significance | None
    order: SourceOrder

    def __call__(self, raw: RawBlock) -> tuple[SourceLook | None, tuple[RawBlock, bytes, FilterCounts, Tested | None]]:
        if self.top and 0 <= raw.scores <= self.column:
            message = f"column {self.column} (from 0) was asked for, but entries have {raw.scores} scores"
            raise DataError(self.source.name, message, raw.first_entry + 1)
        scan = scan_lines(raw.text, raw.scores, (self.column,) if self.top else (), raw.line_offsets)
        faulty = scan.faults != OK
        faults = TableParser(scores=raw.scores).faults(scan, raw.first_entry)
        passed = self.scan.passes(self.source.name, faulty, faults)
        best = ~faulty
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
        keep = (best & ~fails) | (faulty & passed)
        counts = FilterCounts(
            entries=raw.lines,
            kept=int(keep.sum()),
            not_best=int((~best & ~faulty).sum()),
            insignificant=int(fails.sum()),
            faulty_kept=int((faulty & passed).sum()),
            faulty_skipped=int((faulty & ~passed).sum()),
            fields=_count_fields(raw.text, scan),
        )
        if tested:
            counts.tested = int((~tested.wordless).sum())
            counts.absent_sources = int(tested.absent_sources.sum())
            counts.absent_targets = int(tested.absent_targets.sum())
            counts.wordless = int(tested.wordless.sum())
        return self.order.look(raw, scan), (raw, self._encode(raw.text, scan, keep, rows, tested), counts, tested)

    def _encode(self, text: ByteArray, scan: LineScan, keep: Mask, rows: Int64Array, tested: Tested | None) -> bytes:
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
    """Fields of the first entry; 0 if there is none."""
    good = np.flatnonzero(scan.faults == OK)
    if not len(good):
        return 0
    line: bytes = text[scan.line_offsets[good[0]] : scan.line_offsets[good[0] + 1]].tobytes()
    return line.count(b"|||") + 1
