"""Which entries go: the one place where that is decided, for a block on its way and for a whole table alike.

Entries are ranked by a method, cut somewhere, and a failed entry goes unless it is among the best k of a protected
source (Zhang et al. 2014, section 4.3 and footnote 3: "we always keep the first 10 best according to the semantic
similarity").  Everything that a decision about a block needs lies in the block if the method is meaning alone and the
cut is a threshold; then a table can be pruned while it streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phrasetool.phrases import DoubleArray, FloatArray, Mask
from phrasetool.pruning.criteria import Semantic
from phrasetool.pruning.measures import OPINION, SIMILARITIES, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import SizeCurve, SizeLimit, TooSmallError, WorthPart, allowed_entries
from phrasetool.pruning.thresholds import Threshold

SEMANTIC = Semantic()


@dataclass(frozen=True)
class Ranking:
    """N entries by what they deserve.

    Attributes:
        method: that says so.
        measures: of the entries.
        worth: float32 or float64, shape (N,), not NaN: the larger, the more an entry deserves to stay; infinite for
            faulty lines.
        keys: float64, shape (N,): what ranks the entries of one source.
        silent: bool, shape (N,): the method has no opinion of these.
    """

    method: Method
    measures: Measures
    worth: FloatArray | DoubleArray
    keys: DoubleArray
    silent: Mask

    @classmethod
    def of(cls, method: Method, measures: Measures) -> Ranking:
        """By what the method says an entry is worth."""
        return cls.by_worth(method, measures, method.worth(measures))

    @classmethod
    def by_worth(cls, method: Method, measures: Measures, worth: FloatArray) -> Ranking:
        """The same, where it is known what the method says."""
        return cls(method, measures, worth, worth.astype(np.float64), np.zeros(len(measures), np.bool_))

    @classmethod
    def by_similarity(cls, method: Method, measures: Measures) -> Ranking:
        """The paper's: the better similarity is compared with a threshold, their mean ranks the entries of a source."""
        worth = SEMANTIC.worth(measures).astype(np.float64)
        st, ts = measures[SIMILARITIES].astype(np.float64).T
        return cls(method, measures, worth, (st + ts) / 2, ~measures[OPINION])

    def protected(self, best: KeepBest) -> Mask:
        """bool, shape (N,): the best of every protected source, frequent mutual translations if they are protected, and
        faulty lines, which are never pruned."""
        groups = self.measures.group_offsets, self.measures.source_lengths
        protected = best.marks(*groups, self.measures.faulty, self.keys) | self.measures.faulty
        return protected if best.frequent is None else protected | best.frequent_entries(self.measures)

    def strengths(self, best: KeepBest) -> DoubleArray:
        """float64, shape (N,): the largest threshold that each entry survives, infinite if any."""
        strengths: DoubleArray = np.where(self.protected(best), np.inf, self.worth)
        return strengths


# N entries, and bool, shape (N,): which of them stay whatever they are worth.
Guarded = tuple[Ranking, Mask]
# Gives all parts of a table, in order; may be called several times.
GuardedTable = Callable[[], Iterator[Guarded]]
# Says of a part, bool, shape (N,), what does not deserve to stay.
Verdict = Callable[[Ranking, Mask], Mask]


class Cut(Protocol):
    """Where a ranking is cut."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """How to tell what does not deserve to stay.

        Args:
            table: all entries.

        Raises:
            TooSmallError: the protected entries alone are more than may stay.
        """


@dataclass(frozen=True)
class AtThreshold:
    """What is worth less goes; compared in the precision of the worth."""

    threshold: Threshold

    def verdict(self, table: GuardedTable) -> Verdict:
        """See `Cut`."""
        return lambda ranking, protected: _below(ranking, self.threshold.value(ranking.measures.alpha))


@dataclass(frozen=True)
class AtOwnThresholds:
    """What the criteria's own thresholds remove, all taken together; see `Method.fails`."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """See `Cut`."""

        def fails(ranking: Ranking, protected: Mask) -> Mask:
            method, measures = ranking.method, ranking.measures
            return method.fails(method.below(method.worths(measures), measures.alpha))

        return fails


@dataclass(frozen=True)
class OfSize:
    """This share of the entries stays: the protected ones, then the best of the others, ties by table order."""

    share: float

    def verdict(self, table: GuardedTable) -> Verdict:
        """See `Cut`."""
        counted = [(int(protected.sum()), len(protected)) for _, protected in table()]
        count, entries = (sum(numbers) for numbers in zip(*counted, strict=True)) if counted else (0, 0)
        allowed = allowed_entries(self.share, entries)
        if count > allowed:
            raise TooSmallError.of(count, entries, self.share)

        def parts() -> Iterator[WorthPart]:
            return ((ranking.measures.first, ranking.worth, protected) for ranking, protected in table())

        limit = SizeLimit.of(parts, allowed - count)
        return lambda ranking, protected: limit.fails(ranking.worth, protected, ranking.measures.first)


@dataclass(frozen=True)
class AtThresholdForSize:
    """The lowest threshold that leaves at most this share of the entries, as `SizeCurve` finds it while streaming."""

    share: float

    def verdict(self, table: GuardedTable) -> Verdict:
        """See `Cut`."""
        curve = SizeCurve()
        for ranking, protected in table():
            curve.add(np.where(protected, np.inf, ranking.worth))
        threshold = curve.threshold_for(self.share)
        return lambda ranking, protected: _below(ranking, threshold)


@dataclass(frozen=True)
class Everything:
    """Nothing stays but what is protected."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """See `Cut`."""
        return lambda ranking, protected: np.ones(len(protected), np.bool_)


def _below(ranking: Ranking, threshold: float) -> Mask:
    """What is worth less; compared in the precision of the worth."""
    failed: Mask = ranking.worth < ranking.worth.dtype.type(threshold)
    return failed


@dataclass(frozen=True)
class Decision:
    """What was decided about N entries; bool, shape (N,).

    Attributes:
        fails: by what they deserve, they go.
        protected: they stay all the same.
        silent: the method has no opinion of these.
    """

    fails: Mask
    protected: Mask
    silent: Mask

    def __len__(self) -> int:
        return len(self.fails)

    @property
    def keep(self) -> Mask:
        """They stay."""
        return ~self.fails | self.protected

    def part(self, rows: slice) -> Decision:
        """What was decided about some of the entries."""
        return Decision(self.fails[rows], self.protected[rows], self.silent[rows])


def decide(ranking: Ranking, cut: Cut, best: KeepBest) -> Decision:
    """Decide about N entries.

    Args:
        ranking: how much each deserves to stay.
        cut: how much is enough.
        best: which stay all the same.

    Raises:
        TooSmallError: the protected entries alone are more than the cut allows.
    """
    protected = ranking.protected(best)
    verdict = cut.verdict(lambda: iter([(ranking, protected)]))
    return Decision(verdict(ranking, protected), protected, ranking.silent)


@dataclass(frozen=True)
class Rule:
    """How a table is pruned.

    Attributes:
        method: says how much an entry deserves to stay.
        cut: says how much is enough.
        best: says which stay all the same.
    """

    method: Method
    cut: Cut
    best: KeepBest

    @classmethod
    def of(
        cls, method: Method, best: KeepBest, *, threshold: Threshold | None = None, size: float | None = None
    ) -> Rule:
        """The rule of what was asked for.

        Args:
            method: if its criteria have thresholds of their own, these cut.
            best: see above.
            threshold: where to cut.
            size: the share of the entries that may stay.

        Raises:
            ValueError: not exactly one of own thresholds, a threshold and a size was given.
        """
        if sum([bool(method.thresholds), threshold is not None, size is not None]) != 1:
            raise ValueError("expected a threshold or a size, or criteria with thresholds of their own")
        if threshold is not None:
            return cls(method, AtThreshold(threshold), best)
        if size is not None:
            return cls(method, AtThresholdForSize(size) if is_paper_s(method) else OfSize(size), best)
        own = AtThreshold(method.thresholds[0]) if is_paper_s(method) else AtOwnThresholds()
        return cls(method, own, best)

    def ranking(self, measures: Measures) -> Ranking:
        """How the entries of a table, or of a block of one, are ranked."""
        return rank(self.method, measures)

    def decide(self, ranking: Ranking) -> Decision:
        """Decide about the entries of a ranking that this rule, or one of the same method, made; see `decide`."""
        return decide(ranking, self.cut, self.best)


def is_paper_s(method: Method) -> bool:
    """Whether meaning is the only criterion, so that the rule of Zhang et al. is followed to the letter."""
    return method.names == (SEMANTIC.name,)


def protects_frequent(method: Method, at_threshold: bool) -> bool:
    """Return whether frequent mutual translations are protected by default: where similarity alone decides, by a
    threshold, so that nothing else tells how often an entry was seen.

    Args:
        method: how entries are ranked.
        at_threshold: whether the ranking is cut at thresholds, and not by a size or a loss.
    """
    return at_threshold and is_paper_s(method)


def rank(method: Method, measures: Measures) -> Ranking:
    """How a method ranks entries."""
    return Ranking.by_similarity(method, measures) if is_paper_s(method) else Ranking.of(method, measures)
