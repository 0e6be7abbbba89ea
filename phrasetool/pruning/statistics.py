"""Counts of entries and of removed occurrences in a pruning run, which can be added across blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int64Array, Mask
from phrasetool.pruning.protection import DEFAULT_COUNT, frequent_rows

# Number of entries that are listed.
MOST_FREQUENT = 5
# Sums are integers in this unit, so that they do not depend on the order of addition.
_MILLION = 10**6
_JOINT = 2
SCHEMA_VERSION = 1
_LONGEST = 8


class CountedEntry(NamedTuple):
    """An entry and its joint count."""

    source: str
    target: str
    occurrences: float

    def as_dict(self) -> dict[str, Any]:
        """Return the entry for a JSON report."""
        return {"source": self.source, "target": self.target, "count": _number(round(self.occurrences * _MILLION))}


# Returns the source and the target of the entry in a row.
PhrasesOfRow = Callable[[int], tuple[str, str]]


@dataclass
class OccurrenceCounts:
    """Occurrences of the entries of a table or a block, and of those that were removed.

    The counts of blocks or parts, added in the order of the table, are the counts of the whole table.

    Attributes:
        total, removed: sums of joint counts, in millionths.
        missing: number of entries without a joint count; if there are any, the sums do not cover the table.
        derived: number of entries whose joint count was derived from phi(f|e) and c(t).
        frequent: the most frequent removed entries, ties in table order.
        limit: count above which removed mutual translations are reported.
        mutual: number of removed mutual translations with a count above `limit`.
        frequent_mutual: the most frequent removed mutual translations.
    """

    total: int = 0
    removed: int = 0
    missing: int = 0
    derived: int = 0
    frequent: tuple[CountedEntry, ...] = ()
    limit: int = DEFAULT_COUNT
    mutual: int = 0
    frequent_mutual: tuple[CountedEntry, ...] = ()

    @classmethod
    def of(
        cls, counts: DoubleArray, malformed: Mask, removed: Mask, phrases: PhrasesOfRow, limit: int = DEFAULT_COUNT
    ) -> OccurrenceCounts:
        """Count the occurrences of N entries.

        Args:
            counts: float64, shape (N, 3), c(t), c(s) and c(s,t); NaN where a count is missing.
            malformed: bool, shape (N,), lines that are not entries.
            removed: bool, shape (N,), entries that were removed.
            phrases: returns the source and the target of a row.
            limit: count above which removed mutual translations are reported.
        """
        joint = counts[:, _JOINT]
        rows = np.flatnonzero(removed)
        known = joint[~np.isnan(joint)]
        lost = joint[rows]
        rows, lost = rows[~np.isnan(lost)], lost[~np.isnan(lost)]
        mutual = rows[frequent_rows(counts[rows], limit)]
        return cls(
            total=_exact_sum(known),
            removed=_exact_sum(lost),
            missing=len(joint) - len(known) - int(np.count_nonzero(malformed)),
            frequent=_listed(rows, lost, phrases),
            limit=limit,
            mutual=len(mutual),
            frequent_mutual=_listed(mutual, joint[mutual], phrases),
        )

    def __iadd__(self, other: OccurrenceCounts) -> OccurrenceCounts:
        for name in ("total", "removed", "missing", "derived", "mutual"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.limit = other.limit
        self.frequent = _merged(self.frequent, other.frequent)
        self.frequent_mutual = _merged(self.frequent_mutual, other.frequent_mutual)
        return self

    @property
    def complete(self) -> bool:
        """Whether every entry has a joint count."""
        return not self.missing

    @property
    def removed_share(self) -> float:
        """Removed share of the occurrences."""
        return self.removed / self.total if self.total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a JSON report, in the format that `from_dict` reads."""
        return {
            "total": _number(self.total),
            "removed": _number(self.removed),
            "removed_share": round(self.removed_share, 6),
            "entries_without_joint_count": self.missing,
            "entries_with_derived_count": self.derived,
            "most_frequent_removed": [entry.as_dict() for entry in self.frequent],
            "mutual_translations_removed": {
                "seen_more_than": self.limit,
                "entries": self.mutual,
                "most_frequent": [entry.as_dict() for entry in self.frequent_mutual],
            },
        }

    def report(self) -> dict[str, Any] | None:
        """Return `as_dict`, or None if an entry has no joint count and sums and lists would be wrong."""
        return self.as_dict() if self.complete else None

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> OccurrenceCounts:
        """Return the counts that `as_dict` describes.

        Raises:
            KeyError, TypeError, ValueError: the description is invalid.
        """
        mutual = description["mutual_translations_removed"]
        return cls(
            total=round(description["total"] * _MILLION),
            removed=round(description["removed"] * _MILLION),
            missing=description["entries_without_joint_count"],
            derived=description["entries_with_derived_count"],
            frequent=tuple(_entry(entry) for entry in description["most_frequent_removed"]),
            limit=mutual["seen_more_than"],
            mutual=mutual["entries"],
            frequent_mutual=tuple(_entry(entry) for entry in mutual["most_frequent"]),
        )

    @classmethod
    def merged(cls, parts: Iterable[Mapping[str, Any]]) -> OccurrenceCounts:
        """Return the counts of a table from descriptions of its parts, in their order."""
        total = cls()
        for part in parts:
            total += cls.from_dict(part)
        return total

    def millionths_as_numbers(self) -> tuple[float, float]:
        """Return the total and the removed occurrences as numbers."""
        return _number(self.total), _number(self.removed)


def _entry(description: Mapping[str, Any]) -> CountedEntry:
    """Return the entry that `CountedEntry.as_dict` describes."""
    return CountedEntry(description["source"], description["target"], description["count"])


def _number(millionths: int) -> int | float:
    """Return a sum given in millionths, as an int if it is integral."""
    return millionths // _MILLION if millionths % _MILLION == 0 else millionths / _MILLION


def _exact_sum(values: DoubleArray) -> int:
    """Return the sum of non-negative values in millionths; each value is rounded separately."""
    whole = np.floor(values)
    fractions = np.rint((values - whole) * _MILLION)
    return int(whole.astype(np.int64).sum()) * _MILLION + int(fractions.astype(np.int64).sum())


def _listed(rows: Int64Array, counts: DoubleArray, phrases: PhrasesOfRow) -> tuple[CountedEntry, ...]:
    """Return the most frequent entries among the rows, ties in table order."""
    if len(rows) > MOST_FREQUENT:
        least = np.partition(counts, len(counts) - MOST_FREQUENT)[len(counts) - MOST_FREQUENT]
        above, ties = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        chosen = np.sort(np.concatenate([above, ties[: MOST_FREQUENT - len(above)]]))
        rows, counts = rows[chosen], counts[chosen]
    order = np.argsort(-counts, kind="stable")
    return tuple(CountedEntry(*phrases(int(rows[i])), float(counts[i])) for i in order)


def _merged(first: tuple[CountedEntry, ...], second: tuple[CountedEntry, ...]) -> tuple[CountedEntry, ...]:
    """Return the most frequent entries of two lists, of which the first precedes the second in the table."""
    return tuple(sorted((*first, *second), key=lambda entry: -entry.occurrences)[:MOST_FREQUENT])


@dataclass
class PruneStatistics:
    """Counts of one run (or of one block).

    Attributes:
        entries: lines read, including malformed ones.
        sources: source groups read.
        kept: lines written.
        removed: criterion name -> number of entries removed by it.
        protected: entries that failed the criterion but are among the best of a protected source, or are protected as
            frequent mutual translations.
        unscored: entries that are never pruned because a side has no known word.
        malformed_kept, malformed_skipped: malformed lines that were passed through, or left out.
        by_source_length: int64, shape (9, 2), entries and kept entries whose source has 0, 1, .. 7, 8 or more words.
        removed_by: label of the criteria that each alone would have removed entries (see `Reasons.labels`) -> number of
            entries removed.
        model_fit: fit of the model to the table (see `ModelCompatibility`), if a sample of it was large enough.
        settled: entries that were not scored because their sources keep all entries anyway.
        occurrences: joint counts of all entries, and of the removed ones.
        protected_frequent: number of `protected` entries that are frequent mutual translations.
    """

    entries: int = 0
    sources: int = 0
    kept: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    protected: int = 0
    unscored: int = 0
    malformed_kept: int = 0
    malformed_skipped: int = 0
    by_source_length: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((_LONGEST + 1, 2), np.int64))
    removed_by: dict[str, int] = field(default_factory=dict)
    model_fit: dict[str, Any] = field(default_factory=dict)
    settled: int = 0
    occurrences: OccurrenceCounts = field(default_factory=OccurrenceCounts)
    protected_frequent: int = 0

    def __iadd__(self, other: PruneStatistics) -> PruneStatistics:
        for name in (
            "entries",
            "sources",
            "kept",
            "settled",
            "protected",
            "protected_frequent",
            "unscored",
            "malformed_kept",
            "malformed_skipped",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, others in ((self.removed, other.removed), (self.removed_by, other.removed_by)):
            for name, count in others.items():
                mine[name] = mine.get(name, 0) + count
        self.by_source_length += other.by_source_length
        self.occurrences += other.occurrences
        return self

    def count_lengths(self, lengths: npt.NDArray[np.integer], keep: npt.NDArray[np.bool_]) -> None:
        """Count N entries by source length.

        Args:
            lengths: shape (N,), number of words of each entry's source.
            keep: bool, shape (N,), entries that are kept.
        """
        clipped = np.minimum(lengths, _LONGEST)
        self.by_source_length[:, 0] += np.bincount(clipped, minlength=_LONGEST + 1)
        self.by_source_length[:, 1] += np.bincount(clipped[keep], minlength=_LONGEST + 1)

    def as_dict(self, signature: str) -> dict[str, Any]:
        """Return the JSON report, without run times so that it is reproducible to the byte."""
        lengths = {
            f"{length}+" if length == _LONGEST else str(length): {"entries": int(entries), "kept": int(kept)}
            for length, (entries, kept) in enumerate(self.by_source_length)
            if entries
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "signature": signature,
            "entries": self.entries,
            "sources": self.sources,
            "kept": self.kept,
            "kept_share": round(self.kept / self.entries, 6) if self.entries else 1.0,
            "removed": dict(sorted(self.removed.items())),
            "removed_by": dict(sorted(self.removed_by.items())),
            "occurrences": self.occurrences.report(),
            "protected_by_best_k": self.protected - self.protected_frequent,
            "protected_frequent": self.protected_frequent,
            "unscored": self.unscored,
            "malformed": {"kept": self.malformed_kept, "skipped": self.malformed_skipped},
            "by_source_length": lengths,
            **({"model_fit": self.model_fit} if self.model_fit else {}),
        }
