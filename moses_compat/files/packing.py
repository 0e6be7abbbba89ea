"""Compression of files: gzip, bzip2, xz and zstd, detected by their first bytes, and chosen by name for writing.

A file may be a sequence of members (gzip), streams (bzip2, xz) or frames (zstd), e.g. if it was compressed in parallel
or concatenated with `cat`.  Gzip is read with isal, see `streams`, and written with libdeflate, because the output of
isal occasionally depends on previous content of memory.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import deflate
from isal import isal_zlib

from phrasetool.phrases import ByteArray

# The number of bytes that `packing_of` examines.
HEAD_BYTES = 10
# On a phrase table, it takes twice the time of isal for 6 % fewer bytes, and half the time of zlib for 9 % fewer bytes.
_GZIP_LEVEL = 1
# On blocks of 2 MiB of a phrase table, it takes a sixth of the time of the default, 6, for 22 % more bytes, which are
# 26 % fewer than those of gzip.
_XZ_LEVEL = 2
# Compressed bytes that are read at a time; zstandard holds all their decompressed data in memory.
_PIECE = 1 << 15


class Truncated(Exception):
    """The compressed data end within a stream."""


class Damaged(Exception):
    """The data are not valid compressed data, or a checksum is wrong."""


class TrailingData(Exception):
    """Other data follow a complete stream.

    Args:
        offset: where it begins in the file, in bytes.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True)
class Packing:
    """A compression format.

    Attributes:
        name: the name in messages.
        ending: ending of the names of files in this format.
        magic: pattern of the first `HEAD_BYTES` bytes.
        start: the bytes that all such files begin with.
        compress: compresses bytes to a member, a stream or a frame; may be called by several threads.
        decompressor: returns an object with `decompress`, `eof` and `unused_data` for one stream.
        padding: whether zero bytes may follow a stream.
    """

    name: str
    ending: str
    magic: re.Pattern[bytes]
    start: bytes
    compress: Callable[[bytes | ByteArray], bytes]
    decompressor: Callable[[], Any]
    padding: bool = False

    def begins(self, head: bytes, path: str) -> bool:
        """Whether a file with these first bytes has this format; its name decides if it was cut within them."""
        if self.magic.match(head):
            return True
        return path.endswith(self.ending) and 0 < len(head) < HEAD_BYTES and head.startswith(self.start[: len(head)])


def _compress_gzip(data: bytes | ByteArray) -> bytes:
    """Compress data to one gzip member without name and timestamp."""
    return bytes(deflate.gzip_compress(data, _GZIP_LEVEL))


def _compress_bzip2(data: bytes | ByteArray) -> bytes:
    import bz2

    return bz2.compress(data)  # type: ignore[arg-type]


def _compress_xz(data: bytes | ByteArray) -> bytes:
    import lzma

    return lzma.compress(data, preset=_XZ_LEVEL)  # type: ignore[arg-type]


def _compress_zstd(data: bytes | ByteArray) -> bytes:
    packed: bytes = _zstd()[0](bytes(data))
    return packed


def _bzip2_decompressor() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _xz_decompressor() -> Any:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


def _zstd_decompressor() -> Any:
    return _zstd()[1]()


@cache
def _zstd() -> tuple[Callable[[bytes], bytes], Callable[[], Any]]:
    """Return functions that compress data and make a decompressor, from the first package that is installed.

    Raises:
        ModuleNotFoundError: no package is installed; the error names `zstandard`.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            return _by_module_of_python(importlib.import_module(name))
    zstandard = importlib.import_module("zstandard")
    # Threads must not share objects of zstandard.
    return (
        lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
        lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
    )


def _by_module_of_python(zstd: ModuleType) -> tuple[Callable[[bytes], bytes], Callable[[], Any]]:
    """Return the functions of `_zstd` from Python 3.14's module, which `backports.zstd` provides for older versions."""
    checked, large = {zstd.CompressionParameter.checksum_flag: 1}, {zstd.DecompressionParameter.window_log_max: 31}
    return lambda data: zstd.compress(data, options=checked), lambda: zstd.ZstdDecompressor(options=large)


GZIP = Packing(
    "gzip", ".gz", re.compile(rb"\x1f\x8b"), b"\x1f\x8b", _compress_gzip, lambda: isal_zlib.decompressobj(31), True
)
PACKINGS = (
    GZIP,
    # The stream begins with a block, or with the end of an empty stream.
    Packing("bzip2", ".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), b"BZh", _compress_bzip2,
            _bzip2_decompressor),
    Packing("xz", ".xz", re.compile(rb"\xfd7zXZ\0"), b"\xfd7zXZ\0", _compress_xz, _xz_decompressor, True),
    # The stream begins with a frame, or with a skippable frame.
    Packing("zstd", ".zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), b"\x28\xb5\x2f\xfd",
            _compress_zstd, _zstd_decompressor),
)  # fmt: skip


def packing_of(head: bytes, path: str) -> Packing | None:
    """Return the compression format of a file with these first bytes; None if it is not compressed."""
    return next((packing for packing in PACKINGS if packing.begins(head, path)), None)


def packing_for(path: str) -> Packing | None:
    """Return the compression format for writing a file of this name; None if it is not to be compressed."""
    return next((packing for packing in PACKINGS if path.endswith(packing.ending)), None)


def without_ending(path: str) -> str:
    """Return a name without the ending of a compression format."""
    packing = packing_for(path)
    return path.removesuffix(packing.ending) if packing else path


class Unpacked:
    """A reader of the content of a compressed file.

    Args:
        packed: the compressed file, read with `read1`.
        packing: its compression format.

    Raises:
        ModuleNotFoundError: the package for this format is not installed.
    """

    def __init__(self, packed: Any, packing: Packing) -> None:
        self._packed, self._packing = packed, packing
        self._stream = packing.decompressor()
        self._made = b""
        self._taken = 0

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end.

        Raises:
            Truncated: the file ends within a stream.
            TrailingData: other data follow a stream.
            Damaged: the data cannot be unpacked.
        """
        while not self._made:
            if self._stream.eof:
                if not self._next_stream():
                    return b""
            elif piece := self._packed.read1(_PIECE):
                self._taken += len(piece)
                self._made = self._unpack(piece)
            else:
                raise Truncated
        data, self._made = self._made[:size], self._made[size:]
        return data

    def _unpack(self, piece: bytes) -> bytes:
        try:
            data: bytes = self._stream.decompress(piece)
        except Exception as error:  # each module has its own error class
            raise Damaged(str(error)) from error
        return data

    def _next_stream(self) -> bool:
        """Begin the next stream; False at the end of the file."""
        rest: bytes = self._stream.unused_data
        while True:
            if self._packing.padding:
                rest = rest.lstrip(b"\0")
            if len(rest) >= HEAD_BYTES:
                break
            piece = self._packed.read1(_PIECE)
            if not piece:
                break
            self._taken += len(piece)
            rest += piece
        if not rest:
            return False
        if not self._packing.begins(rest, self._packing.ending):
            raise TrailingData(self._taken - len(rest))
        self._stream = self._packing.decompressor()
        self._made = self._unpack(rest)
        return True


def trailing_data_offset(path: str) -> int | None:
    """Return the offset at which other data begin after complete members of a gzip file, in bytes.

    None if there are no such data, or if the file cannot be read again.
    """
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb", buffering=_PIECE) as file:
            members = Unpacked(file, GZIP)
            while members.read(1 << 20):
                pass
    except TrailingData as error:
        return error.offset
    except (OSError, Truncated, Damaged):
        pass
    return None
