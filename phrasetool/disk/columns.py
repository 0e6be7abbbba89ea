"""Columns of numbers and records in files without a name, for more rows than fit into memory.

A column is written once from the front, read by rows, and never mapped into memory.  Records are partitioned by a
number that each of them has, so that every part fits into memory.  The system removes the files when their process
ends, however it ends.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import PhraseToolError, reason
from phrasetool.phrases import Int64Array

# Bytes that are read at a time where a whole column is read.
PIECE = 1 << 22
Records = npt.NDArray[Any]
# Each part is an open file.
_MOST = 200
# Numbers that are drawn for each part, to part in like sizes.
_DRAWN = 256


class DiskColumn:
    """Rows of numbers on disk.

    Rows may be read by several threads, also those that stand there while others are appended.

    Args:
        folder: in which the file is made; None for the system's folder of temporary files.
        dtype: of the numbers.
        width: numbers of a row; 1: arrays have shape (N,), more: shape (N, width).

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None, dtype: npt.DTypeLike, width: int = 1) -> None:
        self.dtype, self.width = np.dtype(dtype), width
        self._folder = folder or tempfile.gettempdir()
        self._row = self.dtype.itemsize * width
        self._rows = 0
        try:
            # Without a buffer, which would stay unwritten where the disk is full.
            file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error("write", error) from error
        self._handle = file.fileno()
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return self._rows

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write rows behind the last one.

        Args:
            values: of the column's type, shape (R,) or (R, width).

        Raises:
            ValueError: the values are of another type or shape.
            PhraseToolError: they cannot be written.
        """
        shape = (len(values),) if self.width == 1 else (len(values), self.width)
        if values.dtype != self.dtype or values.shape != shape:
            raise ValueError(f"rows are {values.dtype} of shape {values.shape}, expected {self.dtype} of {shape}")
        # Views of bytes: an empty array has none.
        rest = memoryview(np.ascontiguousarray(values).tobytes())
        place = self._rows * self._row
        try:
            while rest:
                written = os.pwrite(self._handle, rest, place)
                rest, place = rest[written:], place + written
        except OSError as error:
            raise self._error("write", error) from error
        self._rows += len(values)

    def read(self, first: int, last: int) -> npt.NDArray[Any]:
        """Rows first..last - 1; fewer where there are no more.

        Raises:
            PhraseToolError: they cannot be read.
        """
        rows = max(min(last, self._rows) - first, 0)
        values = np.empty((rows, self.width) if self.width > 1 else rows, self.dtype)
        rest, place = values.reshape(-1).view(np.uint8).data, first * self._row
        try:
            while rest:
                if not (count := os.preadv(self._handle, [rest], place)):
                    raise OSError(0, "the file is shorter than it was written")
                rest, place = rest[count:], place + count
        except OSError as error:
            raise self._error("read", error) from error
        return values

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """All rows, a few megabytes at a time, in order."""
        step = max(PIECE // self._row, 1)
        return (self.read(first, first + step) for first in range(0, self._rows, step))

    def all(self) -> npt.NDArray[Any]:
        """All rows in memory."""
        return self.read(0, self._rows)

    def _error(self, what: str, error: OSError) -> PhraseToolError:
        return PhraseToolError(f"{self._folder}: cannot {what} work files: {reason(error)}")


class Partitions:
    """Records in parts: those of one part keep the order in which they were added.

    Args:
        folder: where the files without a name are; None for the system's folder of temporary files.
        dtype: of a record, with named fields.
        cuts: int64, shape (P - 1,), ascending: part p has the records whose numbers are in [cuts[p - 1], cuts[p]).
    """

    def __init__(self, folder: str | None, dtype: npt.DTypeLike, cuts: Int64Array) -> None:
        self.dtype, self.cuts = np.dtype(dtype), cuts
        self._folder = folder
        # Parts without records have no file.
        self._columns: dict[int, DiskColumn] = {}

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def add(self, numbers: Int64Array, **fields: npt.NDArray[Any]) -> None:
        """Add records: what each has in each field, and the number that it is parted by.

        Raises:
            PhraseToolError: the folder cannot be written to, or the disk is full.
        """
        records = np.empty(len(numbers), self.dtype)
        for name, values in fields.items():
            records[name] = values
        parts = np.searchsorted(self.cuts, numbers, "right")
        order = np.argsort(parts, kind="stable")
        records = records[order]
        bounds = np.searchsorted(parts[order], np.arange(len(self) + 1))
        for part in np.flatnonzero(np.diff(bounds)).tolist():
            if part not in self._columns:
                self._columns[part] = DiskColumn(self._folder, self.dtype)
            self._columns[part].append(records[bounds[part] : bounds[part + 1]])

    def take(self, part: int) -> Records:
        """The records of a part, which are removed from the disk.

        Raises:
            PhraseToolError: they cannot be read.
        """
        column = self._columns.pop(part, None)
        return np.empty(0, self.dtype) if column is None else column.all()

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
        parts: number of parts; there may be fewer.
    """
    if parts == 1:
        return np.zeros(0, np.int64)
    step = max(rows // (_DRAWN * parts), 1)
    drawn = np.sort(np.concatenate([np.zeros(0, np.int64), *(piece[::step] for piece in pieces())]))
    places = np.arange(1, parts) * len(drawn) // parts
    return np.unique(drawn[places]) if len(drawn) else np.zeros(0, np.int64)
