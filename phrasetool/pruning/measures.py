"""Measures of the entries of a table, each a column with a name and a type, in memory or in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn
from phrasetool.phrases import Int64Array, Mask

Number = TypeVar("Number", bound=np.generic)
# Entries of a part, unless a single source has more.
PART = 1 << 18
# Number of values that numpy sums before it adds their sum to the total.
_ADDED = 8192


@dataclass(frozen=True)
class Measure(Generic[Number]):
    """Description of a column that has a value, or a fixed number of values, for every entry.

    Attributes:
        name: unique name.
        dtype: type of the values.
        width: number of values per entry; arrays have shape (N,) for 1, else (N, width).
    """

    name: str
    dtype: type[Number]
    width: int = 1

    def empty(self) -> npt.NDArray[Number]:
        """Return the array of zero entries."""
        return np.zeros((0, self.width) if self.width > 1 else 0, self.dtype)


# p(target | source), the third score.
PROBABILITIES = Measure("probabilities", np.float32)
# How often the pair was extracted; NaN where the table has no count, which criteria that need counts reject.
COUNTS = Measure("counts", np.float32)
# c(t), c(s) and c(s,t) of the table; NaN where it has none.
OCCURRENCES = Measure("occurrences", np.float64, 3)
# The entry's part of a model score: logarithms of its scores times their weights, plus the phrase penalty weight.
MODEL_SCORES = Measure("model scores", np.float32)
# Source-to-target and target-to-source.
SIMILARITIES = Measure("similarities", np.float32, 2)
# False where a side has only unknown words, so that the similarities are meaningless.
SCORED = Measure("scored", np.bool_)
# The same for a syntax encoder and for a pair classifier, which give the same number for both directions.
SYNTAX = Measure("similarities of syntax", np.float32, 2)
SYNTAX_SCORED = Measure("scored by syntax", np.bool_)
PARALLEL = Measure("probabilities of a translation", np.float32, 2)
PARALLEL_SCORED = Measure("scored by translations", np.bool_)
# Measure of a model -> whether the model has a score for the entry.
SCORED_MASKS: Mapping[Measure[np.float32], Measure[np.bool_]] = {
    SIMILARITIES: SCORED, SYNTAX: SYNTAX_SCORED, PARALLEL: PARALLEL_SCORED,
}  # fmt: skip
# -ln p of Fisher's exact test.
SIGNIFICANCE = Measure("significance", np.float32)
# Model score lost without the entry (see `composition`); the absolute values of all weights sum to 1, as after tuning.
LOSSES = Measure("losses", np.float32)
# How often the pair was used in forced decoding of the training set.
USES = Measure("uses", np.float32)
# p(target | source) and p(source | target) estimated from these uses.
FORCED = Measure("forced probabilities", np.float32, 2)
# p(target | source) and p(source | target) estimated from the counts of the table, smoothed.
SMOOTHED = Measure("smoothed probabilities", np.float32, 2)


class UnmeasuredError(ValueError):
    """A requested measure was not computed."""


class TableMeasures(Protocol):
    """Measures of all entries of a table, which may not fit into memory."""

    @property
    def alpha(self) -> float:
        """-ln p of a pair whose sides occur once each, together; set if the significance was computed."""

    def __len__(self) -> int:
        """Return the number of entries."""

    def parts(self) -> Iterator[Measures]:
        """Return all measures in parts of whole source groups, in order; may be called again."""


@dataclass(frozen=True)
class Measures:
    """The N entries of a table or of a part, in G source groups; about 50 bytes per entry.

    `measures[COUNTS]` is the array of a measure; `COUNTS in measures` is true if it was computed.

    Attributes:
        group_offsets: int64, shape (G + 1,), the first entry of each source group.
        source_lengths: int64, shape (G,), number of words of each source.
        malformed: bool, shape (N,), malformed lines; their other measures are meaningless.
        columns: the measures that were computed.
        alpha: -ln p of a pair whose sides occur once each, together; set if the significance was computed.
        first: number of entries of the table before these.
        sums: for a part, returns the sum of a measure over all entries of the table; None for a whole table.
    """

    group_offsets: Int64Array
    source_lengths: Int64Array
    malformed: Mask
    columns: Mapping[Measure[Any], npt.NDArray[Any]] = field(default_factory=dict)
    alpha: float = 0.0
    first: int = 0
    sums: Callable[[Measure[Any]], float] | None = None

    def __len__(self) -> int:
        return len(self.malformed)

    def parts(self) -> Iterator[Measures]:
        """Return an iterator over a single part."""
        return iter((self,))

    def total(self, measure: Measure[Any]) -> float:
        """Return the sum of a measure over all entries of the table, in double precision."""
        return self.sums(measure) if self.sums else float(self[measure].sum(dtype=np.float64))

    def __contains__(self, measure: Measure[Any]) -> bool:
        return measure in self.columns

    def __getitem__(self, measure: Measure[Number]) -> npt.NDArray[Number]:
        """Return the array of a measure, shape (N,) or (N, width).

        Raises:
            UnmeasuredError: the measure was not computed.
        """
        try:
            return self.columns[measure]
        except KeyError:
            raise UnmeasuredError(f"the table was measured without its {measure.name}") from None

    def with_columns(self, columns: Mapping[Measure[Any], npt.NDArray[Any]]) -> Measures:
        """Return these measures with columns added or replaced."""
        return replace(self, columns={**self.columns, **columns})


class MeasuredTable:
    """The N entries of a table on disk; implements `TableMeasures`.

    Several threads may read the rows that were appended.

    Args:
        measures: measures that every appended part has.
        folder: directory of the files; None for the system's temporary directory.
        part: approximate number of entries in memory at a time.

    Attributes:
        alpha: -ln p of a pair whose sides occur once each, together; the caller sets it along with the significance.

    Raises:
        PhraseToolError: the files cannot be created.
    """

    def __init__(self, measures: Iterable[Measure[Any]], folder: str | None = None, part: int = PART) -> None:
        self._folder, self._part = folder, part
        self.alpha = 0.0
        self._columns = {measure: self.new_column(measure.dtype, measure.width) for measure in measures}
        # For each entry, whether it is the first of a source group, and the number of words of its source.
        self._heads, self._lengths = self.new_column(np.bool_), self.new_column(np.int32)
        self._malformed = self.new_column(np.bool_)
        self._totals: dict[Measure[Any], float] = {}

    @staticmethod
    def bytes_an_entry(measures: Iterable[Measure[Any]]) -> int:
        """Return the number of bytes that an entry takes on disk."""
        return 6 + sum(np.dtype(measure.dtype).itemsize * measure.width for measure in measures)

    def new_column(self, dtype: npt.DTypeLike, width: int = 1) -> DiskColumn:
        """Create an empty column in the same directory, without adding it.

        Raises:
            PhraseToolError: the file cannot be created.
        """
        return DiskColumn(self._folder, dtype, width)

    def __len__(self) -> int:
        return len(self._malformed)

    def __contains__(self, measure: Measure[Any]) -> bool:
        return measure in self._columns

    def append(self, part: Measures, continued: bool = False) -> None:
        """Append entries.

        Args:
            part: the entries, with all measures of the table.
            continued: whether the first new entry belongs to the source group of the last existing one.

        Raises:
            PhraseToolError: the entries cannot be written.
        """
        heads = np.zeros(len(part), np.bool_)
        heads[part.group_offsets[:-1] - part.group_offsets[0]] = True
        if continued:
            heads[0] = False
        self._heads.append(heads)
        self._lengths.append(np.repeat(part.source_lengths, np.diff(part.group_offsets)).astype(np.int32))
        self._malformed.append(part.malformed)
        for measure, column in self._columns.items():
            column.append(part[measure])

    def add(self, measure: Measure[Any], column: DiskColumn) -> None:
        """Add a measure of all entries, or replace it.

        Raises:
            ValueError: the column has a different number of entries.
        """
        if len(column) != len(self):
            raise ValueError(f"a column of {len(column)} rows for {len(self)} entries")
        self._columns[measure] = column

    def parts(self) -> Iterator[Measures]:
        """Return all measures in parts of whole source groups, in order; may be called again."""
        first = 0
        while first < len(self):
            last = self._end_of_part(first)
            yield self._rows(first, last)
            first = last

    def _end_of_part(self, first: int) -> int:
        """Return the end of the part that begins at `first`, which is the beginning of a source group."""
        end = first + self._part
        if end >= len(self):
            return len(self)
        heads = np.flatnonzero(self._heads.read(first + 1, end + 1))
        if len(heads):
            return first + 1 + int(heads[-1])
        # A long group is a separate part.
        while end < len(self):
            heads = np.flatnonzero(self._heads.read(end + 1, end + 1 + self._part))
            if len(heads):
                return end + 1 + int(heads[0])
            end += self._part
        return len(self)

    def _rows(self, first: int, last: int) -> Measures:
        offsets, lengths, malformed = self.lines(first, last)
        return Measures(
            offsets, lengths, malformed, _Columns(self._columns, first, last), self.alpha, first, self._total
        )

    def lines(self, first: int, last: int) -> tuple[Int64Array, Int64Array, Mask]:
        """Return the offsets and source lengths of groups, and the malformed lines, of the entries in [first, last).

        The first group may begin before these entries, and the last one may end after them.
        """
        heads, lengths = self._heads.read(first, last), self._lengths.read(first, last)
        heads[:1] = True
        starts = np.flatnonzero(heads)
        return np.append(starts, len(heads)), lengths[starts].astype(np.int64), self._malformed.read(first, last)

    def whole(self) -> Measures:
        """Return the whole table in memory."""
        part = self._rows(0, len(self))
        return Measures(part.group_offsets, part.source_lengths, part.malformed, dict(part.columns), self.alpha)

    def _total(self, measure: Measure[Any]) -> float:
        """Return the sum of a measure, added in numpy's order so that it equals that of an array in memory."""
        if measure not in self._totals:
            column, total = self._columns[measure], np.float64(0)
            for first in range(0, len(column), 32 * _ADDED):
                values = column.read(first, first + 32 * _ADDED)
                for start in range(0, len(values), _ADDED):
                    total += values[start : start + _ADDED].sum(dtype=np.float64)
            self._totals[measure] = float(total)
        return self._totals[measure]


class _Columns(Mapping[Measure[Any], npt.NDArray[Any]]):
    """Rows of columns, read on first access."""

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
