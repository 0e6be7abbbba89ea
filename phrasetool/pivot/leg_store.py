"""A leg on disk: written block by block, and read block by block or by selected groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from phrasetool.disk.disk_columns import DiskColumn
from phrasetool.phrases import Int64Array, prefix_sums
from phrasetool.pivot.leg_rows import LegRows, Ragged

# Bytes that an entry takes during processing, in addition to the stored ones: the number of its target, and its places
# in the table that numbers them and in the order of their bytes.
_WORKED_ON = 40


class LegStore:
    """The entries of a leg in files without a name.

    Args:
        folder: where these are; None for the system's folder of temporary files.
        numbers: columns of numbers.

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None, numbers: int) -> None:
        self._sources, self._targets, self._points = (
            _RaggedColumn(folder, dtype) for dtype in (np.uint8, np.uint8, np.int32)
        )
        self._sizes = DiskColumn(folder, np.int64)
        self._numbers = DiskColumn(folder, np.float64, numbers)
        self._groups, self._rows = [0], [0]

    def __len__(self) -> int:
        return self._rows[-1]

    @property
    def groups(self) -> int:
        """How many sources there are."""
        return self._groups[-1]

    def append(self, rows: LegRows) -> None:
        """Write a block of whole groups.

        Raises:
            PhraseToolError: the disk is full.
        """
        self._sources.append(rows.sources)
        self._targets.append(rows.targets)
        self._points.append(rows.points)
        self._sizes.append(np.diff(rows.groups))
        self._numbers.append(rows.numbers)
        self._groups.append(self._groups[-1] + len(rows.sources))
        self._rows.append(self._rows[-1] + len(rows))

    def blocks(self) -> Iterator[LegRows]:
        """All blocks, in order."""
        return map(self._block, range(len(self._groups) - 1))

    def load(self, groups: Int64Array) -> LegRows:
        """Some groups.

        Args:
            groups: int64, ascending, their numbers; at least one.

        Raises:
            PhraseToolError: they cannot be read.
        """
        bounds = np.searchsorted(groups, self._groups)
        return LegRows.concatenate(
            [
                self._block(block).select(groups[first:last] - self._groups[block])
                for block, (first, last) in enumerate(pairwise(bounds.tolist()))
                if first < last
            ]
        )

    def _block(self, block: int) -> LegRows:
        first, last = self._rows[block], self._rows[block + 1]
        sizes = self._sizes.read(self._groups[block], self._groups[block + 1])
        groups = prefix_sums(sizes)
        return LegRows(
            self._sources.block(block), groups, self._targets.block(block), self._points.block(block),
            self._numbers.read(first, last),
        )  # fmt: skip


class _RaggedColumn:
    """Ragged blocks on disk."""

    def __init__(self, folder: str | None, dtype: type) -> None:
        self._items, self._offsets = DiskColumn(folder, dtype), DiskColumn(folder, np.int64)
        self._places = [(0, 0)]

    def append(self, runs: Ragged) -> None:
        self._items.append(runs.items)
        self._offsets.append(runs.offsets)
        self._places.append((len(self._items), len(self._offsets)))

    def block(self, number: int) -> Ragged:
        (item, offset), (last_item, last_offset) = self._places[number : number + 2]
        return Ragged(self._items.read(item, last_item), self._offsets.read(offset, last_offset))


def bytes_of_groups(rows: LegRows) -> Int64Array:
    """int64, shape (G,): the memory that each group takes while it is worked on."""
    fixed = rows.numbers.shape[1] * 8 + 16 + _WORKED_ON
    by_row = np.diff(rows.targets.offsets) + 4 * np.diff(rows.points.offsets) + fixed
    ends = prefix_sums(by_row)[rows.groups]
    sizes: Int64Array = np.diff(ends) + np.diff(rows.sources.offsets) + 16
    return sizes
