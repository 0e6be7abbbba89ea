"""Conversion between Arrow and NumPy arrays, and an `Output` as a file that pyarrow writes to.

pyarrow's own conversions import pandas if it is installed, which takes a quarter of a second; plain buffers avoid this.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moses_compat.files.streams import Output
from phrasetool.phrases import ByteArray, Int64Array, Mask

# Errors that pyarrow raises for a damaged file, e.g. if names in it are not valid text.
DAMAGED = (OSError, pa.ArrowException, UnicodeDecodeError)


class _Sink(io.RawIOBase):
    """The file methods that pyarrow needs; the caller that opened the output closes it."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._output.write(bytes(data))
        return len(data)


def parquet_file(output: Output) -> pa.PythonFile:
    """Return a file for `pyarrow.parquet.ParquetWriter`; closing it leaves the output open."""
    return pa.PythonFile(_Sink(output), mode="w")


def bits(mask: Mask) -> pa.Buffer:
    """Return a buffer with one bit for each of N values."""
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def number_array(values: npt.NDArray[Any], kind: pa.DataType, present: Mask | None = None) -> pa.Array:
    """Return an array of N numbers of this type; null where `present`, bool of shape (N,), is False."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [_validity(present), data])


def text_array(
    data: bytes | ByteArray, offsets: Int64Array, kind: pa.DataType, present: Mask | None = None
) -> pa.Array:
    """Return an array of N texts, given concatenated with offsets of shape (N + 1,); null where not `present`."""
    buffers = [_validity(present), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _validity(present: Mask | None) -> pa.Buffer | None:
    return None if present is None or present.all() else bits(present)


def numbers_of(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """Return the values of an array of numbers; those at nulls are arbitrary.

    Args:
        kind: NumPy's name of their type.
    """
    values: npt.NDArray[Any] = np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
    return values
