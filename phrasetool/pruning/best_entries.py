"""The best entries of every source by a score, as filter-pt's `-n` and a decoder's table limit choose them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int64Array


@exact_kernel
def _mark_best(
    group_offsets: Int64Array,
    keys: npt.NDArray[np.float64],
    count: int,
    eligible: npt.NDArray[np.bool_],
    best: npt.NDArray[np.bool_],
) -> None:
    if count == 0:
        return
    for group in range(len(group_offsets) - 1):
        first, last = group_offsets[group], group_offsets[group + 1]
        if last - first <= count:
            best[first:last] = eligible[first:last]
            continue
        # A stable sort keeps equal keys in table order.
        order = np.argsort(-keys[first:last], kind="mergesort")
        left = count
        for i in order:
            if left > 0 and eligible[first + i]:
                best[first + i] = True
                left -= 1


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
    best = np.zeros(len(keys), np.bool_)
    _mark_best(group_offsets, np.ascontiguousarray(keys, np.float64), count, eligible, best)
    return best
