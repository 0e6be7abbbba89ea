"""Columns of numbers in files without a name: written once from the front, read by rows, never mapped into memory.

The system removes such a file when its process ends, however it ends: nothing is left for anybody to clean up.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import PhraseToolError, reason

# Bytes that are read at a time by who reads all.
PIECE = 1 << 22


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
