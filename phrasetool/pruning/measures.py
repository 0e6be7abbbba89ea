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
# Entries of a part, but for a source that has more.
PART = 1 << 18
# As many numbers numpy adds up before it adds their sum.
_ADDED = 8192


@dataclass(frozen=True)
class Measure(Generic[Number]):
    """Something that is known of every entry.

    Attributes:
        name: unique.
        dtype: of its values.
        width: values of an entry; 1: arrays have shape (N,), more: shape (N, width).
    """

    name: str
    dtype: type[Number]
    width: int = 1

    def empty(self) -> npt.NDArray[Number]:
        """Of no entries."""
        return np.zeros((0, self.width) if self.width > 1 else 0, self.dtype)


# p(target | source), the third score.
PROBABILITIES = Measure("probabilities", np.float32)
# How often the pair was extracted; NaN where the table does not say, which no criterion accepts that needs counts.
COUNTS = Measure("counts", np.float32)
# c(t), c(s) and c(s,t) as the table has them; NaN where it does not.
OCCURRENCES = Measure("occurrences", np.float64, 3)
# The entry's share of a model score: logarithms of its scores times their weights, and the weight of a phrase.
MODEL_SCORES = Measure("model scores", np.float32)
# Source-to-target and target-to-source.
SIMILARITIES = Measure("similarities", np.float32, 2)
# False where a side has only unknown words, so that the similarities mean nothing.
SCORED = Measure("scored", np.bool_)
# The same of an encoder of syntax, and of a classifier of pairs, which give one number for both directions.
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
# Model score that is lost without the entry (see `composition`); the sizes of all weights add up to 1, as after tuning.
LOSSES = Measure("losses", np.float32)
# How often the pair was used in forced decoding of the training set.
USES = Measure("uses", np.float32)
# p(target | source) and p(source | target) by these uses.
FORCED = Measure("forced probabilities", np.float32, 2)
# p(target | source) and p(source | target) by the counts of the table, smoothed.
SMOOTHED = Measure("smoothed probabilities", np.float32, 2)


class UnmeasuredError(ValueError):
    """A requested measure was not computed."""


class TableMeasures(Protocol):
    """Measures of all entries of a table, which may be more than memory holds."""

    @property
    def alpha(self) -> float:
        """-ln p of a pair that occurs once, together; with the significance."""

    def __len__(self) -> int:
        """How many entries there are."""

    def parts(self) -> Iterator[Measures]:
        """Return all measures, some whole source groups at a time, in order; may be called again."""


@dataclass(frozen=True)
class Measures:
    """The N entries of a table, or of a part of one, in G source groups; some 50 bytes an entry.

    `measures[COUNTS]` is the array of a measure; `COUNTS in measures` is true if it was computed.

    Attributes:
        group_offsets: int64, shape (G + 1,), the first entry of each source group.
        source_lengths: int64, shape (G,), words of each source.
        malformed: bool, shape (N,), malformed lines; their other measures are meaningless.
        columns: the measures that were computed.
        alpha: -ln p of a pair that occurs once, together; with the significance.
        first: how many entries the table has before these.
        sums: of a part, returns the sum of a measure over all entries of the table; None: these are all.
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
        """See `TableMeasures`: all at once."""
        return iter((self,))

    def total(self, measure: Measure[Any]) -> float:
        """The sum of a measure over all entries of the table, in double precision."""
        return self.sums(measure) if self.sums else float(self[measure].sum(dtype=np.float64))

    def __contains__(self, measure: Measure[Any]) -> bool:
        return measure in self.columns

    def __getitem__(self, measure: Measure[Number]) -> npt.NDArray[Number]:
        """The array of a measure, shape (N,) or (N, width).

        Raises:
            UnmeasuredError: it was not taken.
        """
        try:
            return self.columns[measure]
        except KeyError:
            raise UnmeasuredError(f"the table was measured without its {measure.name}") from None

    def with_columns(self, columns: Mapping[Measure[Any], npt.NDArray[Any]]) -> Measures:
        """These measures and more, or others instead."""
        return replace(self, columns={**self.columns, **columns})


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
        self._malformed = self.new_column(np.bool_)
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
        return len(self._malformed)

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
        self._malformed.append(part.malformed)
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
        offsets, lengths, malformed = self.lines(first, last)
        return Measures(
            offsets, lengths, malformed, _Columns(self._columns, first, last), self.alpha, first, self._total
        )

    def lines(self, first: int, last: int) -> tuple[Int64Array, Int64Array, Mask]:
        """Of entries first..last - 1 that stand anywhere: source groups, their words, and which lines are malformed.

        The first and the last group may have more entries before and behind these.
        """
        heads, lengths = self._heads.read(first, last), self._lengths.read(first, last)
        heads[:1] = True
        starts = np.flatnonzero(heads)
        return np.append(starts, len(heads)), lengths[starts].astype(np.int64), self._malformed.read(first, last)

    def whole(self) -> Measures:
        """All of it in memory."""
        part = self._rows(0, len(self))
        return Measures(part.group_offsets, part.source_lengths, part.malformed, dict(part.columns), self.alpha)

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
