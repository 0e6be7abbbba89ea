"""Mutual translations: entries that are the most probable translation in both directions, found by their counts."""

from __future__ import annotations

import numpy as np

from phrasetool.phrases import DoubleArray, Int64Array, Mask

# An entry that was seen more often is worth a warning, or protection.
DEFAULT_COUNT = 100
# Columns of the counts of an entry.
_TARGET, _SOURCE, _JOINT = range(3)


def frequent_rows(counts: DoubleArray, least: int) -> Int64Array:
    """Return the mutual translations that were seen more than `least` times.

    A mutual translation has c(s,t)/c(s) > 0.5 and c(s,t)/c(t) > 0.5, so no other entry of its source or of its target
    is as probable.

    Args:
        counts: float64, shape (N, 3), c(t), c(s) and c(s,t) of each entry; NaN where one is missing.
        least: count that must be exceeded, at least 0.

    Returns:
        int64, row numbers, ascending.
    """
    # Few entries are seen often, so the other two counts are looked at for those alone.
    rows = np.flatnonzero(counts[:, _JOINT] > least)
    seen = counts[rows]
    mutual = (2 * seen[:, _JOINT] > seen[:, _SOURCE]) & (2 * seen[:, _JOINT] > seen[:, _TARGET])
    return rows[mutual]


def frequent_translations(counts: DoubleArray, least: int) -> Mask:
    """Return bool, shape (N,), whether each entry is one of `frequent_rows`."""
    marks = np.zeros(len(counts), np.bool_)
    marks[frequent_rows(counts, least)] = True
    return marks
