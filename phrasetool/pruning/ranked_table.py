"""Ranking of a measured table and the decision about its entries, both kept in files next to its measures.

The counterparts of `Ranking`, `decide` and `explain` for tables of any size.  Steps that depend on single entries
process the table in parts; others collect statistics of all entries in additional passes over its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from phrasetool.disk.columns import DiskColumn
from phrasetool.phrases import Mask
from phrasetool.pruning.decision import Cut, Decision, Guarded, Ranking, Reasons
from phrasetool.pruning.measures import MeasuredTable
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import ScoredPart, SizeLimit


class RankedTable:
    """Scores of all entries of a table by a method.

    Args:
        method: scores the entries.
        table: the entries.

    Raises:
        PhraseToolError: files cannot be written.
    """

    def __init__(self, method: Method, table: MeasuredTable) -> None:
        self.method, self.table = method, table
        self._scores = table.new_column(np.float32)
        for scores in method.scores_by_part(table):
            self._scores.append(scores)

    def __len__(self) -> int:
        return len(self.table)

    def parts(self) -> Iterator[Ranking]:
        """Yield the ranking in parts of whole source groups, in order."""
        for measures in self.table.parts():
            scores = self._scores.read(measures.first, measures.first + len(measures))
            yield Ranking.by_scores(self.method, measures, scores)

    def decide(self, cut: Cut, best: KeepBest) -> DecidedTable:
        """Decide about all entries; see `decision.decide`.

        Raises:
            TooSmallError: there are more protected entries than the cut allows.
            PhraseToolError: files cannot be written.
        """
        protected, fails = self.table.new_column(np.bool_), self.table.new_column(np.bool_)
        for ranking in self.parts():
            protected.append(ranking.protected(best))

        def guarded() -> Iterator[Guarded]:
            for ranking in self.parts():
                first = ranking.measures.first
                yield ranking, protected.read(first, first + len(ranking.scores))

        verdict = cut.verdict(guarded)
        for part in guarded():
            fails.append(verdict(*part))
        return DecidedTable(fails, protected)

    def explain(self, decision: DecidedTable) -> TableReasons:
        """Explain why entries were removed; see `decision.explain`.

        Raises:
            PhraseToolError: files cannot be written.
        """
        method = self.method
        if len(method.parts) == 1:
            return TableReasons(method, self.table.alpha, (self._scores,), decision, ())
        criterion_scores = tuple(self.table.new_column(np.float32) for _ in method.parts)
        for measures in self.table.parts():
            for column, values in zip(criterion_scores, method.criterion_scores(measures).T, strict=True):
                column.append(values)
        limits: tuple[SizeLimit, ...] = ()
        if not method.thresholds:
            count = sum(int(np.count_nonzero(~part.fails & ~part.protected)) for part in decision.parts())
            limits = tuple(SizeLimit.of(partial(decision.with_scores, scores), count) for scores in criterion_scores)
        return TableReasons(method, self.table.alpha, criterion_scores, decision, limits)


@dataclass(frozen=True)
class DecidedTable:
    """Decision about all entries of a table, in files.

    Attributes:
        fails: bool, entries that the cut removes unless they are protected.
        protected: bool, entries that are kept anyway.
    """

    fails: DiskColumn
    protected: DiskColumn

    def __len__(self) -> int:
        return len(self.fails)

    def part(self, rows: slice) -> Decision:
        """Return the decision about the given rows; may be called by several threads."""
        fails, protected = self.fails.read(rows.start, rows.stop), self.protected.read(rows.start, rows.stop)
        return Decision(fails, protected, np.zeros(len(fails), np.bool_))

    def parts(self) -> Iterator[Decision]:
        """Yield the decision in parts, in order."""
        for fails, protected in zip(self.fails.pieces(), self.protected.pieces(), strict=True):
            yield Decision(fails, protected, np.zeros(len(fails), np.bool_))

    @property
    def keep(self) -> Mask:
        """Entries that are kept, bool, shape (N,), in memory."""
        return np.concatenate([np.zeros(0, np.bool_), *(part.keep for part in self.parts())])

    def with_scores(self, scores: DiskColumn) -> Iterator[ScoredPart]:
        """Yield the entries in parts: the first row, the scores, and a mask of the protected entries."""
        first = 0
        for values in scores.pieces():
            yield first, values, self.protected.read(first, first + len(values))
            first += len(values)


@dataclass(frozen=True)
class TableReasons:
    """Scores of all entries of a table by each criterion, and the reasons for removals.

    Attributes:
        method: the method that combines the criteria.
        alpha: see `Measures`.
        criterion_scores: scores by each criterion.
        decision: the decision about the entries.
        limits: limits at which each criterion alone would have kept as many entries; empty for a single criterion and
            for criteria with thresholds.
    """

    method: Method
    alpha: float
    criterion_scores: tuple[DiskColumn, ...]
    decision: DecidedTable
    limits: tuple[SizeLimit, ...]

    def part(self, rows: slice) -> Reasons:
        """Return the reasons of the given rows; may be called by several threads."""
        criterion_scores = np.stack([column.read(rows.start, rows.stop) for column in self.criterion_scores], axis=1)
        decision = self.decision.part(rows)
        if self.limits:
            fails = np.stack(
                [
                    limit.fails(column, decision.protected, rows.start)
                    for limit, column in zip(self.limits, criterion_scores.T, strict=True)
                ],
                axis=1,
            )
        elif len(self.criterion_scores) == 1:
            fails = decision.fails[:, None]
        else:
            fails = self.method.below(criterion_scores, self.alpha)
        return Reasons(self.method.names, criterion_scores, fails)
