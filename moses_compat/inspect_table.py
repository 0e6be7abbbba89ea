"""What is this table: fields, scores, counts, order, and what is odd about it, in one streaming pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from moses_compat.streams import Input
from moses_compat.table_blocks import raw_blocks
from moses_compat.table_text import Fault, TableParser
from phrasetool.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

_PIPE = np.uint8(ord("|"))
_LF = np.uint8(10)
_TAB = np.uint8(9)
_SPACE = np.uint8(32)
_BINS = 20
_SHOWN_FAULTS = 5


@exact_kernel
def _count_fields(text: ByteArray, line_offsets: Int64Array, fields: Int64Array) -> None:
    for line in range(len(fields)):
        count = 1
        i = line_offsets[line]
        end = line_offsets[line + 1]
        while i < end:
            if i + 2 < end and text[i] == _PIPE and text[i + 1] == _PIPE and text[i + 2] == _PIPE:
                count += 1
                i += 3
            else:
                i += 1
        fields[line] = count


@exact_kernel
def _first_unsorted(text: ByteArray, line_offsets: Int64Array) -> int:
    """The first line that is bytewise below the one before it, or -1."""
    for line in range(1, len(line_offsets) - 1):
        a, a_end = line_offsets[line - 1], line_offsets[line]
        b, b_end = a_end, line_offsets[line + 1]
        while a < a_end and b < b_end and text[a] == text[b] and text[a] != _LF:
            a += 1
            b += 1
        left = text[a] if a < a_end and text[a] != _LF else -1
        right = text[b] if b < b_end and text[b] != _LF else -1
        if left > right:
            return line
    return -1


@exact_kernel
def _blank_oddities(text: ByteArray, line_offsets: Int64Array, odd: Int64Array) -> None:
    """odd = lines with a tab, lines with two spaces in a row where no field is empty."""
    for line in range(len(line_offsets) - 1):
        tab = False
        double = False
        for i in range(line_offsets[line], line_offsets[line + 1] - 1):
            if text[i] == _TAB:
                tab = True
            elif text[i] == _SPACE and text[i + 1] == _SPACE:
                double = True
        odd[0] += tab
        odd[1] += double


@exact_kernel
def _hash_heads(text: ByteArray, starts: Int64Array, ends: Int64Array, hashes: npt.NDArray[np.uint64]) -> None:
    for i in range(len(starts)):
        h = np.uint64(0xCBF29CE484222325)
        for k in range(starts[i], ends[i]):
            h = (h ^ np.uint64(text[k])) * np.uint64(0x100000001B3)
        hashes[i] = h


@dataclass
class ColumnSummary:
    """One score column.

    Attributes:
        smallest, largest, total: over all entries.
        zeros, negatives: entries with such a score; Moses reads 0 as -100 and cannot use a negative one.
        histogram: int64, shape (20,), entries by score in [0, 1]; what is outside is in the end bins.
    """

    smallest: float = np.inf
    largest: float = -np.inf
    total: float = 0.0
    zeros: int = 0
    negatives: int = 0
    histogram: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add the scores of more entries, shape (N,)."""
        if not len(values):
            return
        self.smallest = min(self.smallest, float(values.min()))
        self.largest = max(self.largest, float(values.max()))
        self.total += float(values.sum())
        self.zeros += int((values == 0).sum())
        self.negatives += int((values < 0).sum())
        bins = np.clip((np.clip(values, 0, 1) * _BINS).astype(np.int64), 0, _BINS - 1)
        self.histogram += np.bincount(bins, minlength=_BINS)


@dataclass
class TableSummary:
    """What a table is.

    Attributes:
        entries: lines.
        sources: source groups.
        bytes: of the text.
        fields: how many lines have how many fields.
        scores: scores of an entry, -1 if there is no good line.
        columns: a summary per score.
        group_sizes: how many sources have 1, 2-5, 6-10, 11-20, 21-100, more entries.
        first_unsorted: line number (from 1) of the first line below the one before it in byte order; 0 if sorted.
        returning_sources: groups whose source had a group before.
        not_utf8, tabs, double_spaces, empty_targets: lines with such an oddity.
        faults: how many lines are no entries.
        first_faults: the first few of them.
    """

    entries: int = 0
    sources: int = 0
    bytes: int = 0
    fields: Counter[int] = field(default_factory=Counter)
    scores: int = -1
    columns: list[ColumnSummary] = field(default_factory=list)
    group_sizes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(6, np.int64))
    first_unsorted: int = 0
    returning_sources: int = 0
    not_utf8: int = 0
    tabs: int = 0
    double_spaces: int = 0
    empty_targets: int = 0
    faults: int = 0
    first_faults: list[Fault] = field(default_factory=list)


def inspect_table(source: Input, progress: Callable[[int, int], None] = lambda position, entries: None) -> TableSummary:
    """Read a table once and summarise it; takes 8 bytes of memory per source group.

    Raises:
        DataError: the file cannot be read.
    """
    summary = TableSummary()
    previous = np.zeros(0, np.uint8)
    heads: list[npt.NDArray[np.uint64]] = []
    for raw in raw_blocks(source):
        if raw.scores >= 0 and not summary.columns:
            summary.scores = raw.scores
            summary.columns = [ColumnSummary() for _ in range(raw.scores)]
        parser = TableParser(scores=raw.scores, columns=range(len(summary.columns)))
        block, faults = parser(raw.index, raw.first_entry, raw.text)
        good = ~block.faulty
        for column, values in zip(summary.columns, block.columns[good].T, strict=True):
            column.add(values)
        _look_at_lines(summary, raw.text, block.line_offsets, previous)
        sizes = np.diff(block.group_offsets)
        summary.group_sizes += np.bincount(np.searchsorted([1, 5, 10, 20, 100], sizes), minlength=6)
        heads.append(_group_hashes(raw.text, block.line_offsets[block.group_offsets[:-1]]))
        summary.entries += len(block)
        summary.sources += len(sizes)
        summary.bytes += len(raw.text)
        summary.faults += len(faults)
        summary.first_faults += faults[: _SHOWN_FAULTS - len(summary.first_faults)]
        previous = raw.text[block.line_offsets[-2] :]
        progress(raw.position, summary.entries)
    if heads:
        everyone = np.concatenate(heads)
        summary.returning_sources = len(everyone) - len(np.unique(everyone))
    return summary


def _look_at_lines(summary: TableSummary, text: ByteArray, line_offsets: Int64Array, previous: ByteArray) -> None:
    fields = np.empty(len(line_offsets) - 1, np.int64)
    _count_fields(text, line_offsets, fields)
    summary.fields.update(Counter(fields.tolist()))
    odd = np.zeros(2, np.int64)
    _blank_oddities(text, line_offsets, odd)
    empty = text.tobytes().count(b"|||  |||")
    summary.tabs += int(odd[0])
    summary.double_spaces += max(int(odd[1]) - empty, 0)
    summary.empty_targets += empty
    try:
        text.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        summary.not_utf8 += sum(not _is_utf8(line) for line in text.tobytes().split(b"\n"))
    if not summary.first_unsorted:
        # The line before the block comes along, so that the border is looked at too.
        both = np.concatenate([previous, text])
        offsets = np.concatenate([[0], line_offsets + len(previous)]) if len(previous) else line_offsets
        line = int(_first_unsorted(both, offsets))
        if line >= 0:
            summary.first_unsorted = summary.entries + line + (0 if len(previous) else 1)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _group_hashes(text: ByteArray, starts: Int64Array) -> npt.NDArray[np.uint64]:
    data = text.tobytes()
    ends = np.array([data.find(b"|||", start) for start in starts.tolist()], np.int64)
    hashes = np.empty(len(starts), np.uint64)
    _hash_heads(text, starts, np.maximum(ends, starts), hashes)
    return hashes
