"""Arrow's arrays from NumPy's and back, and an `Output` as a file that pyarrow writes to.

pyarrow's own conversions import pandas where it is installed, a quarter of a second; plain buffers need no such help.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moses_compat.files.streams import Output
from phrasetool.phrases import ByteArray, Int64Array, Mask

# What pyarrow raises of a file that is damaged; names in it that are no text are one way.
DAMAGED = (OSError, pa.ArrowException, UnicodeDecodeError)


class _Sink(io.RawIOBase):
    """The part of a file that pyarrow asks for; whoever opened the output closes it."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._output.write(bytes(data))
        return len(data)


def parquet_file(output: Output) -> pa.PythonFile:
    """A file for `pyarrow.parquet.ParquetWriter`; closing it leaves the output open."""
    return pa.PythonFile(_Sink(output), mode="w")


def bits(mask: Mask) -> pa.Buffer:
    """A bit for each of N values."""
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def number_array(values: npt.NDArray[Any], kind: pa.DataType, there: Mask | None = None) -> pa.Array:
    """N numbers, which are of this kind; null where they are not `there`, bool of shape (N,)."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [_validity(there), data])


def text_array(data: bytes | ByteArray, offsets: Int64Array, kind: pa.DataType, there: Mask | None = None) -> pa.Array:
    """N texts one after another, and where they begin, int64 of shape (N + 1,); null where they are not `there`."""
    buffers = [_validity(there), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _validity(there: Mask | None) -> pa.Buffer | None:
    return None if there is None or there.all() else bits(there)


def numbers_of(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """The values of an array of numbers, whatever stands where it has nulls.

    Args:
        kind: NumPy's name of their type.
    """
    values: npt.NDArray[Any] = np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
    return values
