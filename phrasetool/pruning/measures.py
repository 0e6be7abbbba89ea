"""Measures of the entries of a table, each a column with a name and a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array, Mask

Number = TypeVar("Number", bound=np.generic)


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
OPINION = Measure("opinion", np.bool_)
# The same of an encoder of syntax, and of a classifier of pairs, which give one number for both directions.
SYNTAX = Measure("similarities of syntax", np.float32, 2)
SYNTAX_OPINION = Measure("opinion on syntax", np.bool_)
PARALLEL = Measure("probabilities of a translation", np.float32, 2)
PARALLEL_OPINION = Measure("opinion on translations", np.bool_)
# Measure of a model -> whether the model has a score for the entry.
OPINIONS: Mapping[Measure[np.float32], Measure[np.bool_]] = {
    SIMILARITIES: OPINION, SYNTAX: SYNTAX_OPINION, PARALLEL: PARALLEL_OPINION,
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
        faulty: bool, shape (N,), malformed lines; their other measures are meaningless.
        columns: the measures that were computed.
        alpha: -ln p of a pair that occurs once, together; with the significance.
        first: how many entries the table has before these.
        sums: of a part, returns the sum of a measure over all entries of the table; None: these are all.
    """

    group_offsets: Int64Array
    source_lengths: Int64Array
    faulty: Mask
    columns: Mapping[Measure[Any], npt.NDArray[Any]] = field(default_factory=dict)
    alpha: float = 0.0
    first: int = 0
    sums: Callable[[Measure[Any]], float] | None = None

    def __len__(self) -> int:
        return len(self.faulty)

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
