"""The selection rule: a failed entry goes unless it is among the best k of a protected source.

Zhang et al. (2014), footnote 3: "we always keep the first 10 best according to the semantic similarity".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import EntryBlock, FloatArray, Int64Array
from phrasetool.pruning.best_entries import best_of_groups
from phrasetool.pruning.measures import Measures
from phrasetool.pruning.semantic import mean_similarity
from phrasetool.pruning.sizes import TooSmallError, allowed_entries
from phrasetool.scoring.scorer import Scores

PROTECTIONS = ("all", "words", "none")


@dataclass(frozen=True)
class KeepBest:
    """Protects the best k entries of a source, ranked by the mean of both similarities, ties by table order.

    Args:
        k: how many entries a source keeps at least.
        protect: `all` sources (the paper's rule), sources of one word only (`words`: no word becomes unknown to the
            decoder), or `none`.

    Raises:
        ValueError: k is negative, or `protect` is not one of `PROTECTIONS`.
    """

    k: int = 10
    protect: str = "all"

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"cannot keep the best {self.k} entries")
        if self.protect not in PROTECTIONS:
            raise ValueError(f"unknown protection {self.protect!r}; expected one of {', '.join(PROTECTIONS)}")

    def marks(self, block: EntryBlock, scores: Scores) -> npt.NDArray[np.bool_]:
        """bool, shape (N,): the entries that stay whatever a criterion says."""
        return self.best_by(block.group_offsets, block.source_lengths, block.faulty, mean_similarity(scores))

    def best_by(
        self,
        group_offsets: Int64Array,
        source_lengths: Int64Array,
        faulty: npt.NDArray[np.bool_],
        keys: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.bool_]:
        """The entries that stay if those with the largest keys are the best.

        Args:
            group_offsets: int64, shape (G + 1,), the first entry of each source.
            source_lengths: int64, shape (G,), words of each source.
            faulty: bool, shape (N,), lines that take no place among the best.
            keys: float64, shape (N,), not NaN.

        Returns:
            bool, shape (N,).
        """
        if self.protect == "none":
            return np.zeros(len(faulty), np.bool_)
        eligible = ~faulty
        if self.protect == "words":
            eligible &= np.repeat(source_lengths == 1, np.diff(group_offsets))
        return best_of_groups(group_offsets, keys, self.k, eligible)


@dataclass(frozen=True)
class Selection:
    """What was decided about the N entries of a table; bool, shape (N,).

    Attributes:
        keep: they stay.
        fails: by worth alone they would not.
        protected: they stay whatever their worth.
    """

    keep: npt.NDArray[np.bool_]
    fails: npt.NDArray[np.bool_]
    protected: npt.NDArray[np.bool_]


def select_entries(
    measures: Measures,
    worth: FloatArray,
    best: KeepBest,
    *,
    threshold: float | None = None,
    size: float | None = None,
    fails: npt.NDArray[np.bool_] | None = None,
) -> Selection:
    """Decide about all entries of a table: by a threshold, by how many may stay, or by what others decided.

    Args:
        measures: of the table.
        worth: float32, shape (N,), not NaN; the larger, the more an entry deserves to stay.
        best: protects the k best of a source by worth, ties by table order.  Faulty lines are protected too.
        threshold: what is worth less goes.
        size: share of the entries that may stay; the protected ones, then the best of the others, ties by table order.
        fails: bool, shape (N,): what goes (see `Method.fails`).

    Raises:
        ValueError: not exactly one of threshold, size and fails was given.
        TooSmallError: the protected entries alone are more than the size allows.
    """
    if sum(rule is not None for rule in (threshold, size, fails)) != 1:
        raise ValueError("expected a threshold or a size, or what fails")
    protected = _protected(measures, worth, best)
    if threshold is not None:
        fails = worth < np.float32(threshold)
    elif size is not None:
        count = int(protected.sum())
        allowed = allowed_entries(size, len(measures))
        if count > allowed:
            raise TooSmallError.of(count, len(measures), size)
        fails = fails_by_size(worth, protected, allowed - count)
    assert fails is not None
    return Selection(~fails | protected, fails, protected)


def fails_by_size(worth: FloatArray, protected: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.bool_]:
    """What does not belong to the `count` best of the unprotected entries, ties by table order.

    A protected entry fails if it is worth less than the last one of these.

    Args:
        worth: float32, shape (N,), not NaN.
        protected: bool, shape (N,).

    Returns:
        bool, shape (N,).
    """
    rest = np.flatnonzero(~protected)
    fails = np.ones(len(worth), np.bool_)
    fails[rest[np.argsort(-worth[rest], kind="stable")[:count]]] = False
    entered = ~fails & ~protected
    fails &= ~(protected & (worth >= worth[entered].min(initial=np.inf)))
    return fails


def _protected(measures: Measures, worth: FloatArray, best: KeepBest) -> npt.NDArray[np.bool_]:
    """The k best of every protected source, and faulty lines."""
    keys = worth.astype(np.float64)
    protected = best.best_by(measures.group_offsets, measures.source_lengths, measures.faulty, keys)
    protected |= measures.faulty
    return protected


class AffordableBest:
    """How many of the best entries of a source may be protected, where only so many entries stay.

    Ten of every source (or word) are more than a small table can hold; what else is worth keeping has no room left.  So
    the protected entries take up three fifths of a table at most; but each protected source keeps one at least, or the
    decoder would not know it.  Measured on the development sets of Multi30k German-English and Czech-English and of
    Tatoeba Chinese-English, words protected, composition+semantic: at 3, 5, 7, 10 and 15 % of the entries, the largest
    k of 1, 2, 3, 4, 6, 8 and 10 that this allows is within 0.25 BLEU of the best of them, and mostly within 0.1.

    Args:
        measures: of the table.
        worth: as for `select_entries`.
        protect: as for `KeepBest`.
    """

    MOST = 10
    SHARE = 0.6

    def __init__(self, measures: Measures, worth: FloatArray, protect: str) -> None:
        self.protect = protect
        chosen = (_protected(measures, worth, KeepBest(k, protect)) for k in range(1, self.MOST + 1))
        self._counts = [int(protected.sum()) for protected in chosen]

    @property
    def smallest(self) -> int:
        """The entries of the smallest table there can be: one of each protected source."""
        return self._counts[0]

    def best(self, entries: int) -> KeepBest:
        """The rule for a table of so many entries: the largest k up to 10 that takes up three fifths at most."""
        affordable = [k for k, count in enumerate(self._counts, 1) if count <= self.SHARE * entries]
        return KeepBest(max(affordable, default=1), self.protect)
