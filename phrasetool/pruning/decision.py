"""Decision which entries to remove from a table or from a block of a stream, and the reasons of each removal.

A method ranks the entries, a cut determines which ones fail, and an entry that fails is removed unless it is among the
best k of a protected source (Zhang et al. 2014, section 4.3 and footnote 3: "we always keep the first 10 best according
to the semantic similarity").  If the method is semantic similarity alone and the cut is a threshold, a decision about a
block needs nothing outside the block, so the table can be pruned as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, FloatArray, Mask
from phrasetool.pruning.criteria import Semantic
from phrasetool.pruning.measures import SCORED, SIMILARITIES, Measures
from phrasetool.pruning.methods import Method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import ScoredPart, SizeCurve, SizeLimit, TooSmallError, allowed_entries
from phrasetool.pruning.thresholds import Threshold

SEMANTIC = Semantic()
# Label of entries that no criterion alone would have removed.
TOGETHER = "together"


@dataclass(frozen=True)
class Ranking:
    """N entries ranked by a method.

    Attributes:
        method: the method that ranks the entries.
        measures: the measures of the entries.
        scores: float32 or float64, shape (N,), not NaN; entries with larger scores are kept longer; infinite for
            malformed lines.
        keys: float64, shape (N,): sort keys for ranking the entries of one source.
        silent: bool, shape (N,): entries for which the method has no score.
    """

    method: Method
    measures: Measures
    scores: FloatArray | DoubleArray
    keys: DoubleArray
    silent: Mask

    @classmethod
    def of(cls, method: Method, measures: Measures) -> Ranking:
        """Rank entries by the method's scores."""
        return cls.by_scores(method, measures, method.scores(measures))

    @classmethod
    def by_scores(cls, method: Method, measures: Measures, scores: FloatArray) -> Ranking:
        """Rank entries by the given scores of the method."""
        return cls(method, measures, scores, scores.astype(np.float64), np.zeros(len(measures), np.bool_))

    @classmethod
    def by_similarity(cls, method: Method, measures: Measures) -> Ranking:
        """Rank as Zhang et al.: compare the higher similarity with a threshold, rank within a source by the mean."""
        # In single precision, a similarity that is written as the threshold is equal to it.
        scores = SEMANTIC.scores(measures)
        st, ts = measures[SIMILARITIES].astype(np.float64).T
        return cls(method, measures, scores, (st + ts) / 2, ~measures[SCORED])

    def protected(self, best: KeepBest) -> Mask:
        """Return a bool array of shape (N,) that marks the entries that are never pruned.

        They are the best of every protected source, frequent mutual translations if protected, and malformed lines.
        """
        groups = self.measures.group_offsets, self.measures.source_lengths
        protected = best.marks(*groups, self.measures.malformed, self.keys) | self.measures.malformed
        return protected if best.frequent is None else protected | best.frequent_entries(self.measures)

    def strengths(self, best: KeepBest) -> FloatArray | DoubleArray:
        """Return the largest threshold at which each entry is kept, shape (N,); infinite where protected."""
        return np.where(self.protected(best), self.scores.dtype.type(np.inf), self.scores)


# N entries, and bool, shape (N,): entries that are always kept.
Guarded = tuple[Ranking, Mask]
# Returns an iterator over all parts of a table, in order; may be called several times.
GuardedTable = Callable[[], Iterator[Guarded]]
# Returns the entries of a part that fail, bool, shape (N,).
Verdict = Callable[[Ranking, Mask], Mask]


class Cut(Protocol):
    """Rule that determines which entries of a ranking fail."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """Return the function that finds the entries that fail.

        Args:
            table: all entries.

        Raises:
            TooSmallError: there are more protected entries than may be kept.
        """


@dataclass(frozen=True)
class AtThreshold:
    """Remove entries whose score is below a threshold, compared in the precision of the score."""

    threshold: Threshold

    def verdict(self, table: GuardedTable) -> Verdict:
        """Return a function that compares scores with the threshold."""
        return lambda ranking, protected: _below(ranking, self.threshold.value(ranking.measures.alpha))


@dataclass(frozen=True)
class AtOwnThresholds:
    """Remove the entries that fail the criteria's own thresholds, combined as in `Method.fails`."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """Return a function that compares each criterion's scores with its own threshold."""

        def fails(ranking: Ranking, protected: Mask) -> Mask:
            method, measures = ranking.method, ranking.measures
            return method.fails(method.below(method.criterion_scores(measures), measures.alpha))

        return fails


@dataclass(frozen=True)
class OfSize:
    """Keep a share of the entries: the protected ones, then the best of the others, ties broken by table order.

    Attributes:
        share: the share of the entries to keep.
        skip_malformed: whether malformed lines, which are always protected, will be left out of the table; then they
            count neither as entries nor as kept.
    """

    share: float
    skip_malformed: bool = False

    def verdict(self, table: GuardedTable) -> Verdict:
        """Find the limit in two or more passes over the table; raise `TooSmallError` as in `Cut.verdict`."""
        count = entries = 0
        for ranking, protected in table():
            skipped = int(np.count_nonzero(ranking.measures.malformed)) if self.skip_malformed else 0
            count += int(np.count_nonzero(protected)) - skipped
            entries += len(protected) - skipped
        allowed = allowed_entries(self.share, entries)
        if count > allowed:
            raise TooSmallError.of(count, entries, self.share)

        def parts() -> Iterator[ScoredPart]:
            return ((ranking.measures.first, ranking.scores, protected) for ranking, protected in table())

        limit = SizeLimit.of(parts, allowed - count)
        return lambda ranking, protected: limit.fails(ranking.scores, protected, ranking.measures.first)


@dataclass(frozen=True)
class AtThresholdForSize:
    """Cut at the lowest threshold that keeps at most a share of the entries, found by `SizeCurve` while streaming."""

    share: float

    def verdict(self, table: GuardedTable) -> Verdict:
        """Find the threshold in one pass over the table."""
        curve = SizeCurve()
        for ranking, protected in table():
            curve.add(np.where(protected, ranking.scores.dtype.type(np.inf), ranking.scores))
        threshold = curve.threshold_for(self.share)
        return lambda ranking, protected: _below(ranking, threshold)


@dataclass(frozen=True)
class Everything:
    """Remove all entries that are not protected."""

    def verdict(self, table: GuardedTable) -> Verdict:
        """Return a function that fails every entry."""
        return lambda ranking, protected: np.ones(len(protected), np.bool_)


def _below(ranking: Ranking, threshold: float) -> Mask:
    """Return the entries whose score is below a threshold, compared in the precision of the score."""
    failed: Mask = ranking.scores < ranking.scores.dtype.type(threshold)
    return failed


@dataclass(frozen=True)
class Decision:
    """Decision about N entries.

    Attributes:
        fails: bool, shape (N,): entries that the cut removes unless they are protected.
        protected: bool, shape (N,): entries that are kept anyway.
        silent: bool, shape (N,): entries without a score.
    """

    fails: Mask
    protected: Mask
    silent: Mask

    def __len__(self) -> int:
        return len(self.fails)

    @property
    def keep(self) -> Mask:
        """Entries that are kept, bool, shape (N,)."""
        return ~self.fails | self.protected

    def part(self, rows: slice) -> Decision:
        """Return the decision about the given rows."""
        return Decision(self.fails[rows], self.protected[rows], self.silent[rows])


def decide(ranking: Ranking, cut: Cut, best: KeepBest) -> Decision:
    """Decide about N entries.

    Args:
        ranking: the scores of the entries.
        cut: determines which scores fail.
        best: determines which entries are protected.

    Raises:
        TooSmallError: there are more protected entries than the cut allows.
    """
    protected = ranking.protected(best)
    verdict = cut.verdict(lambda: iter([(ranking, protected)]))
    return Decision(verdict(ranking, protected), protected, ranking.silent)


@dataclass(frozen=True)
class Rule:
    """Method, cut and protection by which a table is pruned.

    Attributes:
        method: scores the entries.
        cut: determines which scores fail.
        best: determines which entries are protected.
    """

    method: Method
    cut: Cut
    best: KeepBest

    @classmethod
    def of(
        cls, method: Method, best: KeepBest, *, threshold: Threshold | None = None, size: float | None = None
    ) -> Rule:
        """Return the rule for a threshold, a size or the criteria's own thresholds.

        Args:
            method: scores the entries; thresholds of its criteria, if any, determine the cut.
            best: determines which entries are protected.
            threshold: the threshold of the cut.
            size: the share of the entries to keep.

        Raises:
            ValueError: not exactly one of the criteria's own thresholds, a threshold and a size was given.
        """
        if sum([bool(method.thresholds), threshold is not None, size is not None]) != 1:
            raise ValueError("expected a threshold or a size, or criteria with their own thresholds")
        if threshold is not None:
            return cls(method, AtThreshold(threshold), best)
        if size is not None:
            return cls(method, AtThresholdForSize(size) if is_brae_rule(method) else OfSize(size), best)
        own = AtThreshold(method.thresholds[0]) if is_brae_rule(method) else AtOwnThresholds()
        return cls(method, own, best)

    def ranking(self, measures: Measures) -> Ranking:
        """Rank the entries of a table or of a block."""
        return rank(self.method, measures)

    def decide(self, ranking: Ranking) -> Decision:
        """Decide about the entries of a ranking by the method of this rule; see `decide`."""
        return decide(ranking, self.cut, self.best)


def is_brae_rule(method: Method) -> bool:
    """Return whether semantic similarity is the only criterion, so that the exact rule of Zhang et al. applies."""
    return method.names == (SEMANTIC.name,)


def protects_frequent(method: Method, at_threshold: bool) -> bool:
    """Return whether frequent mutual translations are protected by default.

    They are protected if the only criterion is a threshold of the similarity, which ignores the counts of entries.

    Args:
        method: the method that ranks the entries.
        at_threshold: whether the ranking is cut at thresholds, and not by a size or a loss.
    """
    return at_threshold and is_brae_rule(method)


def rank(method: Method, measures: Measures) -> Ranking:
    """Rank entries by a method."""
    return Ranking.by_similarity(method, measures) if is_brae_rule(method) else Ranking.of(method, measures)


@dataclass(frozen=True)
class Reasons:
    """Scores of N entries by C criteria, and the criteria that fail each entry.

    Attributes:
        names: names of the criteria.
        criterion_scores: float32, shape (N, C).
        fails: bool, shape (N, C): whether the criterion alone would remove the entry.
    """

    names: tuple[str, ...]
    criterion_scores: FloatArray
    fails: Mask

    def part(self, rows: slice | npt.NDArray[Any]) -> Reasons:
        """Return the reasons of the given rows."""
        return Reasons(self.names, self.criterion_scores[rows], self.fails[rows])

    @property
    def labels(self) -> list[str]:
        """Labels of the `codes`: names of criteria joined by `+`, or `together`."""
        codes = range(1 << len(self.names))
        return ["+".join(name for bit, name in enumerate(self.names) if code >> bit & 1) or TOGETHER for code in codes]

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Bit mask of the criteria that fail each entry, int32, shape (N,); bit 0 is the first criterion."""
        bits = 1 << np.arange(len(self.names), dtype=np.int32)
        codes: npt.NDArray[np.int32] = self.fails.astype(np.int32) @ bits
        return codes

    def counts(self) -> dict[str, int]:
        """Return the number of entries with each label; labels without entries are left out."""
        counted = np.bincount(self.codes, minlength=1 << len(self.names))
        return {label: int(count) for label, count in zip(self.labels, counted, strict=True) if count}


def explain(ranking: Ranking, decision: Decision) -> Reasons:
    """Explain why the removed entries of a table were removed.

    Criteria with thresholds fail the entries below them.  Otherwise, where n unprotected entries were kept, a criterion
    fails all unprotected entries except its best n.

    Args:
        ranking: the ranking on which the decision is based.
        decision: the decision to explain.
    """
    method, measures = ranking.method, ranking.measures
    if len(method.parts) == 1:
        # The scores of the ranking are those of the only criterion.
        return Reasons(method.names, ranking.scores.astype(np.float32)[:, None], decision.fails[:, None])
    criterion_scores = method.criterion_scores(measures)
    if method.thresholds:
        fails = method.below(criterion_scores, measures.alpha)
    else:
        count = int((decision.keep & ~decision.protected).sum())
        first, protected = measures.first, decision.protected
        columns = [np.ascontiguousarray(column) for column in criterion_scores.T]
        limits = [SizeLimit.of(lambda scores=column: [(first, scores, protected)], count) for column in columns]  # type: ignore[misc]
        alone = [limit.fails(column, protected, first) for limit, column in zip(limits, columns, strict=True)]
        fails = np.stack(alone, axis=1)
    return Reasons(method.names, criterion_scores, fails)
