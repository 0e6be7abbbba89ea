"""Measures of all entries of a table, kept in files: memory holds one part of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn
from phrasetool.phrases import Int64Array, Mask
from phrasetool.pruning.measures import Measure, Measures

# Entries of a part, but for a source that has more.
PART = 1 << 18
# As many numbers numpy adds up before it adds their sum.
_ADDED = 8192


class MeasuredTable:
    """The N entries of a table; follows `TableMeasures`.

    What was appended may be read by several threads.

    Args:
        measures: what is known of every entry.
        folder: for the files; None for the system's folder of temporary files.
        part: about how many entries memory holds at a time.

    Attributes:
        alpha: -ln p of a pair that occurs once, together; to be set, with the significance.

    Raises:
        PhraseToolError: the files cannot be made.
    """

    def __init__(self, measures: Iterable[Measure[Any]], folder: str | None = None, part: int = PART) -> None:
        self._folder, self._part = folder, part
        self.alpha = 0.0
        self._columns = {measure: self.new_column(measure.dtype, measure.width) for measure in measures}
        # Whether a source group begins with an entry, and the words of its source.
        self._heads, self._lengths = self.new_column(np.bool_), self.new_column(np.int32)
        self._faulty = self.new_column(np.bool_)
        self._totals: dict[Measure[Any], float] = {}

    @staticmethod
    def bytes_an_entry(measures: Iterable[Measure[Any]]) -> int:
        """Return the bytes that an entry takes on disk."""
        return 6 + sum(np.dtype(measure.dtype).itemsize * measure.width for measure in measures)

    def new_column(self, dtype: npt.DTypeLike, width: int = 1) -> DiskColumn:
        """Make a column in addition to the measures.

        Raises:
            PhraseToolError: its file cannot be made.
        """
        return DiskColumn(self._folder, dtype, width)

    def __len__(self) -> int:
        return len(self._faulty)

    def __contains__(self, measure: Measure[Any]) -> bool:
        return measure in self._columns

    def append(self, part: Measures, continued: bool = False) -> None:
        """Write the next entries behind the last one.

        Args:
            part: them, with all the measures.
            continued: whether the first of them belongs to the source group of the last one.

        Raises:
            PhraseToolError: they cannot be written.
        """
        heads = np.zeros(len(part), np.bool_)
        heads[part.group_offsets[:-1] - part.group_offsets[0]] = True
        if continued:
            heads[0] = False
        self._heads.append(heads)
        self._lengths.append(np.repeat(part.source_lengths, np.diff(part.group_offsets)).astype(np.int32))
        self._faulty.append(part.faulty)
        for measure, column in self._columns.items():
            column.append(part[measure])

    def add(self, measure: Measure[Any], column: DiskColumn) -> None:
        """Take in another measure of all entries.

        Raises:
            ValueError: it is of another number of entries.
        """
        if len(column) != len(self):
            raise ValueError(f"a column of {len(column)} rows for {len(self)} entries")
        self._columns[measure] = column

    def parts(self) -> Iterator[Measures]:
        """Return all measures, some whole source groups at a time, in order; may be called again."""
        first = 0
        while first < len(self):
            last = self._end_of_part(first)
            yield self._rows(first, last)
            first = last

    def _end_of_part(self, first: int) -> int:
        """Where a part that begins there ends: where a source group begins."""
        seen = first + self._part
        if seen >= len(self):
            return len(self)
        heads = np.flatnonzero(self._heads.read(first + 1, seen + 1))
        if len(heads):
            return first + 1 + int(heads[-1])
        # A long group is a part of its own.
        while seen < len(self):
            heads = np.flatnonzero(self._heads.read(seen + 1, seen + 1 + self._part))
            if len(heads):
                return seen + 1 + int(heads[0])
            seen += self._part
        return len(self)

    def _rows(self, first: int, last: int) -> Measures:
        offsets, lengths, faulty = self.lines(first, last)
        return Measures(offsets, lengths, faulty, _Columns(self._columns, first, last), self.alpha, first, self._total)

    def lines(self, first: int, last: int) -> tuple[Int64Array, Int64Array, Mask]:
        """Of entries first..last - 1 that stand anywhere: source groups, their words, and which lines are faulty.

        The first and the last group may have more entries before and behind these.
        """
        heads, lengths = self._heads.read(first, last), self._lengths.read(first, last)
        heads[:1] = True
        starts = np.flatnonzero(heads)
        return np.append(starts, len(heads)), lengths[starts].astype(np.int64), self._faulty.read(first, last)

    def whole(self) -> Measures:
        """All of it in memory."""
        part = self._rows(0, len(self))
        return Measures(part.group_offsets, part.source_lengths, part.faulty, dict(part.columns), self.alpha)

    def _total(self, measure: Measure[Any]) -> float:
        """The sum of a measure, added up in numpy's order, so that it is the one of an array in memory."""
        if measure not in self._totals:
            column, total = self._columns[measure], np.float64(0)
            for first in range(0, len(column), 32 * _ADDED):
                values = column.read(first, first + 32 * _ADDED)
                for start in range(0, len(values), _ADDED):
                    total += values[start : start + _ADDED].sum(dtype=np.float64)
            self._totals[measure] = float(total)
        return self._totals[measure]


class _Columns(Mapping[Measure[Any], npt.NDArray[Any]]):
    """Some rows of columns, read when they are asked for."""

    def __init__(self, columns: Mapping[Measure[Any], DiskColumn], first: int, last: int) -> None:
        self._columns, self._rows = columns, (first, last)
        self._read: dict[Measure[Any], npt.NDArray[Any]] = {}

    def __getitem__(self, measure: Measure[Any]) -> npt.NDArray[Any]:
        if measure not in self._read:
            self._read[measure] = self._columns[measure].read(*self._rows)
        return self._read[measure]

    def __iter__(self) -> Iterator[Measure[Any]]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
