"""Word alignments through a middle language."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Mask
from phrasetool.pivot.batches import SourceBatch
from phrasetool.pivot.leg_rows import Ragged


@exact_kernel
def _compose(
    first_items: Int32Array,
    first_offsets: Int64Array,
    second_items: Int32Array,
    second_offsets: Int64Array,
    best: Int64Array,
    items: Int32Array,
    offsets: Int64Array,
) -> int:
    """The points of all best ways; return how many."""
    count = 0
    offsets[0] = 0
    for entry in range(len(best)):
        start = count
        for p in range(first_offsets[best[entry, 0]], first_offsets[best[entry, 0] + 1]):
            for q in range(second_offsets[best[entry, 1]], second_offsets[best[entry, 1] + 1]):
                if first_items[p] & 0xFFFF != second_items[q] >> 16:
                    continue
                # Target first, which is how they ascend.
                point = (second_items[q] & 0xFFFF) << 16 | first_items[p] >> 16
                k = count
                while k > start and items[k - 1] > point:
                    k -= 1
                if k > start and items[k - 1] == point:
                    continue
                for moved in range(count, k, -1):
                    items[moved] = items[moved - 1]
                items[k] = point
                count += 1
        offsets[entry + 1] = count
    return count


def compose_alignments(batch: SourceBatch, best: Int64Array) -> Ragged:
    """The alignment points of best ways: a source word and a target word that are aligned with one middle word.

    Args:
        batch: with the legs' points.
        best: int64, shape (E, 2), see `WaySums`.

    Returns:
        Of each entry its points, ascending by target position, target position << 16 | source position.
    """
    first, second = batch.first.points, batch.second.points
    room = (np.diff(first.offsets)[best[:, 0]] * np.diff(second.offsets)[best[:, 1]]).sum()
    items, offsets = np.empty(int(room), np.int32), np.empty(len(best) + 1, np.int64)
    count = _compose(
        first.items.astype(np.int32, copy=False), first.offsets, second.items.astype(np.int32, copy=False),
        second.offsets, np.ascontiguousarray(best), items, offsets,
    )  # fmt: skip
    return Ragged(items[:count], offsets)


def empty_alignments(points: Ragged) -> int:
    """How many entries have no point."""
    none: Mask = np.diff(points.offsets) == 0
    return int(np.count_nonzero(none))
