"""The best entries of every source by a score, as filter-pt's `-n` and a decoder's table limit choose them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array


def best_of_groups(
    group_offsets: Int64Array, keys: npt.NDArray[np.float64], count: int, eligible: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Mark the `count` eligible entries of each group with the largest keys; ties go to the earlier entry.

    Args:
        group_offsets: int64, shape (G + 1,), the first entry of each group.
        keys: shape (N,), not NaN where eligible.
        count: entries per group, at least 0.
        eligible: bool, shape (N,).

    Returns:
        bool, shape (N,).
    """
    groups = np.repeat(np.arange(len(group_offsets) - 1), np.diff(group_offsets))
    # Sorted by group, the ineligible last, then by key; the sort is stable.
    order = np.lexsort((-keys, ~eligible, groups))
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - group_offsets[:-1][groups]
    best: npt.NDArray[np.bool_] = eligible & (ranks < count)
    return best
