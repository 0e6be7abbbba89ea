"""Bytes of a file, unpacked, for who reads them as of any other file: by lines, or so many at a time."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

from moses_compat.files.streams import Input

# As much is there to be peeked at.
BUFFER_BYTES = 1 << 16


class _Unpacked(io.RawIOBase):
    """An input as a file of Python."""

    def __init__(self, source: Input) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


def open_bytes(path: str) -> BinaryIO:
    """Open a file, compressed or not (told by its content), or `-` for standard input.

    Raises:
        DataError: the file cannot be opened; or, from reading, as `Input.read`.
        ModuleNotFoundError: the package that can read it is not installed.
    """
    return cast(BinaryIO, io.BufferedReader(_Unpacked(Input(path)), BUFFER_BYTES))
