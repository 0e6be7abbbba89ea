"""Columns of numbers and partitioned records in unnamed temporary files, for more rows than fit into memory.

A column is written sequentially, read by rows, and never mapped into memory.  Records are partitioned by a numeric key,
so that every part fits into memory.  The operating system removes the files when the process ends, even if it is
killed.
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

# Bytes read at a time when a whole column is read.
PIECE = 1 << 22
Records = npt.NDArray[Any]
# Maximum number of parts; each is an open file.
_MOST = 200
# Numbers sampled per part to choose cuts that give parts of similar size.
_DRAWN = 256


class DiskColumn:
    """Rows of numbers on disk.

    Several threads may read rows, even while other rows are appended.

    Args:
        folder: folder of the file; None for the system's temporary folder.
        dtype: type of the numbers.
        width: numbers per row; arrays have shape (N,) if it is 1, else (N, width).

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None, dtype: npt.DTypeLike, width: int = 1) -> None:
        self.dtype, self.width = np.dtype(dtype), width
        self._folder = folder or tempfile.gettempdir()
        self._row = self.dtype.itemsize * width
        self._rows = 0
        try:
            # Unbuffered: a buffer would remain unwritten if the disk is full.
            file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error("write", error) from error
        self._handle = file.fileno()
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return self._rows

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append rows.

        Args:
            values: array of the column's type, shape (R,) or (R, width).

        Raises:
            ValueError: the values have another type or shape.
            PhraseToolError: the rows cannot be written.
        """
        shape = (len(values),) if self.width == 1 else (len(values), self.width)
        if values.dtype != self.dtype or values.shape != shape:
            raise ValueError(f"rows are {values.dtype} of shape {values.shape}, expected {self.dtype} of {shape}")
        # A copy as bytes, because an empty array cannot be viewed as bytes.
        rest = memoryview(np.ascontiguousarray(values).tobytes())
        offset = self._rows * self._row
        try:
            while rest:
                written = os.pwrite(self._handle, rest, offset)
                rest, offset = rest[written:], offset + written
        except OSError as error:
            raise self._error("write", error) from error
        self._rows += len(values)

    def read(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return rows first..last - 1; fewer if the column ends before.

        Raises:
            PhraseToolError: the rows cannot be read.
        """
        rows = max(min(last, self._rows) - first, 0)
        values = np.empty((rows, self.width) if self.width > 1 else rows, self.dtype)
        rest, offset = values.reshape(-1).view(np.uint8).data, first * self._row
        try:
            while rest:
                if not (count := os.preadv(self._handle, [rest], offset)):
                    raise OSError(0, "the file is shorter than it was written")
                rest, offset = rest[count:], offset + count
        except OSError as error:
            raise self._error("read", error) from error
        return values

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows in order, a few megabytes at a time."""
        step = max(PIECE // self._row, 1)
        return (self.read(first, first + step) for first in range(0, self._rows, step))

    def all(self) -> npt.NDArray[Any]:
        """Return all rows."""
        return self.read(0, self._rows)

    def _error(self, what: str, error: OSError) -> PhraseToolError:
        return PhraseToolError(f"{self._folder}: cannot {what} work files: {reason(error)}")


class Partitions:
    """Records partitioned by number; within a part, records keep the order in which they were added.

    Args:
        folder: folder of the unnamed files; None for the system's temporary folder.
        dtype: structured type of a record.
        cuts: int64, shape (P - 1,), ascending: part p contains the records with numbers in [cuts[p - 1], cuts[p]).
    """

    def __init__(self, folder: str | None, dtype: npt.DTypeLike, cuts: Int64Array) -> None:
        self.dtype, self.cuts = np.dtype(dtype), cuts
        self._folder = folder
        # Parts without records have no file.
        self._columns: dict[int, DiskColumn] = {}

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def add(self, numbers: Int64Array, **fields: npt.NDArray[Any]) -> None:
        """Add records.

        Args:
            numbers: shape (R,), the number that each record is partitioned by.
            fields: for each field of the type, the values of the records.

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
        """Return the records of a part, and remove them from the disk.

        Raises:
            PhraseToolError: the records cannot be read.
        """
        column = self._columns.pop(part, None)
        return np.empty(0, self.dtype) if column is None else column.all()

    def bounds(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the range of numbers of each part, within first..last - 1."""
        ends = [first, *np.clip(self.cuts, first, last).tolist(), last]
        return pairwise(ends)


def parts_for(rows: int, row_bytes: int, memory: int) -> int:
    """Return the number of parts needed for one part to fit into memory, at most 200.

    Args:
        rows: maximum number of records.
        row_bytes: bytes that a record takes while its part is processed.
        memory: available memory in bytes.
    """
    return int(min(max(-(-rows * row_bytes // max(memory, 1)), 1), _MOST))


def even_cuts(rows: int, parts: int) -> Int64Array:
    """Return cuts that divide the numbers 0..rows - 1 into parts of equal size."""
    return np.arange(1, parts, dtype=np.int64) * -(-rows // parts)


def sampled_cuts(pieces: Callable[[], Iterable[Int64Array]], rows: int, parts: int) -> Int64Array:
    """Return cuts that divide unevenly distributed numbers into parts of about equal size, estimated from a sample.

    Args:
        pieces: returns all numbers, in pieces.
        rows: maximum number of numbers.
        parts: requested number of parts; there may be fewer, because equal numbers are always in the same part.
    """
    if parts == 1:
        return np.zeros(0, np.int64)
    step = max(rows // (_DRAWN * parts), 1)
    drawn = np.sort(np.concatenate([np.zeros(0, np.int64), *(piece[::step] for piece in pieces())]))
    indices = np.arange(1, parts) * len(drawn) // parts
    return np.unique(drawn[indices]) if len(drawn) else np.zeros(0, np.int64)
