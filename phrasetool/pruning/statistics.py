"""Counts of a pruning run, which add up across blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.pruning.occurrence_counts import OccurrenceCounts

SCHEMA_VERSION = 1
_LONGEST = 8


@dataclass
class PruneStatistics:
    """Counts of one run (or of one block).

    Attributes:
        entries: lines read, faulty ones included.
        sources: source groups read.
        kept: lines written.
        removed: criterion name -> entries removed by it.
        protected: entries that failed the criterion but were among the best of a protected source, or are protected as
            frequent mutual translations.
        without_opinion: entries never pruned because a side has no known word.
        faulty_kept, faulty_skipped: lines that could not be read, passed through or left out.
        by_source_length: int64, shape (9, 2), entries and kept entries whose source has 0, 1, .. 7, 8 or more words.
        removed_by: which criteria alone would have removed them (see `Reasons.labels`) -> entries removed.
        model_fit: how well the model fits the table (see `ModelFit`), where a sample of it could tell.
        settled: entries of sources that keep all of theirs, where nothing was asked about these.
        occurrences: joint counts of all entries, and of those that were removed.
        protected_frequent: those of `protected` that are frequent mutual translations.
    """

    entries: int = 0
    sources: int = 0
    kept: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    protected: int = 0
    without_opinion: int = 0
    faulty_kept: int = 0
    faulty_skipped: int = 0
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
            "without_opinion",
            "faulty_kept",
            "faulty_skipped",
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
            lengths: shape (N,), words of each entry's source.
            keep: bool, shape (N,).
        """
        clipped = np.minimum(lengths, _LONGEST)
        self.by_source_length[:, 0] += np.bincount(clipped, minlength=_LONGEST + 1)
        self.by_source_length[:, 1] += np.bincount(clipped[keep], minlength=_LONGEST + 1)

    def as_dict(self, signature: str) -> dict[str, Any]:
        """Return the JSON report; the same input gives the same bytes, so the report holds no times."""
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
            "without_opinion": self.without_opinion,
            "faulty": {"kept": self.faulty_kept, "skipped": self.faulty_skipped},
            "by_source_length": lengths,
            **({"model_fit": self.model_fit} if self.model_fit else {}),
        }
