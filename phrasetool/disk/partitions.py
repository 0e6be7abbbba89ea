"""Records on disk, parted by a number each of them has: each part fits into memory and is worked on by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.disk.disk_columns import DiskColumn
from phrasetool.phrases import Int64Array

Records = npt.NDArray[Any]
# Each part is an open file.
_MOST = 200
# Numbers that are drawn for each part, to part in like sizes.
_DRAWN = 256


class Partitions:
    """Records in parts: those of one part keep the order in which they were added.

    Args:
        folder: where the files without a name are; None for the system's folder of temporary files.
        dtype: of a record, with named fields.
        cuts: int64, shape (P - 1,), ascending: part p has the records whose numbers are in [cuts[p - 1], cuts[p]).

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None, dtype: npt.DTypeLike, cuts: Int64Array) -> None:
        self.dtype, self.cuts = np.dtype(dtype), cuts
        self._columns: list[DiskColumn | None] = [DiskColumn(folder, self.dtype) for _ in range(len(cuts) + 1)]

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, numbers: Int64Array, **fields: npt.NDArray[Any]) -> None:
        """Add records: what each has in each field, and the number that it is parted by.

        Raises:
            PhraseToolError: the disk is full.
        """
        records = np.empty(len(numbers), self.dtype)
        for name, values in fields.items():
            records[name] = values
        parts = np.searchsorted(self.cuts, numbers, "right")
        order = np.argsort(parts, kind="stable")
        records = records[order]
        bounds = np.searchsorted(parts[order], np.arange(len(self) + 1))
        for part in np.flatnonzero(np.diff(bounds)).tolist():
            column = self._columns[part]
            assert column is not None
            column.append(records[bounds[part] : bounds[part + 1]])

    def take(self, part: int) -> Records:
        """The records of a part, which is removed from the disk.

        Raises:
            PhraseToolError: they cannot be read.
        """
        column, self._columns[part] = self._columns[part], None
        assert column is not None
        return column.all()

    def bounds(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The range of numbers of each part, of all numbers in first..last - 1."""
        ends = [first, *np.clip(self.cuts, first, last).tolist(), last]
        return pairwise(ends)


def parts_for(rows: int, row_bytes: int, memory: int) -> int:
    """How many parts it takes so that one of them fits into memory.

    Args:
        rows: how many records there are, at most.
        row_bytes: that each takes when its part is worked on.
        memory: bytes.
    """
    return int(min(max(-(-rows * row_bytes // max(memory, 1)), 1), _MOST))


def even_cuts(rows: int, parts: int) -> Int64Array:
    """Cuts of the numbers 0..rows - 1 into parts of one size."""
    return np.arange(1, parts, dtype=np.int64) * -(-rows // parts)


def drawn_cuts(pieces: Callable[[], Iterable[Int64Array]], rows: int, parts: int) -> Int64Array:
    """Cuts of numbers that are not evenly spread, into parts of about one size; one number is in one part.

    Args:
        pieces: gives all numbers, piece by piece.
        rows: how many there are, at most.
        parts: that are wanted; there may be fewer.
    """
    if parts == 1:
        return np.zeros(0, np.int64)
    step = max(rows // (_DRAWN * parts), 1)
    drawn = np.sort(np.concatenate([np.zeros(0, np.int64), *(piece[::step] for piece in pieces())]))
    places = np.arange(1, parts) * len(drawn) // parts
    return np.unique(drawn[places]) if len(drawn) else np.zeros(0, np.int64)
