"""An `Output` as a file that pyarrow writes to."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from moses_compat.files.streams import Output


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
