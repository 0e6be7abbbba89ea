"""Index of the phrases of a table, so that the entries of a phrase are found without reading the table.

The index is one file next to the table.  It holds a compressed copy of the table in blocks, and for each side the
sorted keys of its phrases with the blocks in which they occur:

    blocks          zlib streams of some 128 KB of text each, whole lines
    source keys     uint64, ascending; source blocks: uint32, as many
    target keys     uint64, ascending; target blocks: uint32, as many
    block table     per block: offset and length of the stream, number of its first line
    description     JSON: format, positions of the arrays, number of lines, and size, time and hash of the table
    last 8 bytes    length of the description

A key is the hash of the words of a phrase with single spaces (`lines.hashes`).  Phrases with the same key are
distinguished by reading the block.  A key that occurs in several blocks is stored once for each.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from moses_compat.files.streams import Input, Output, check_writable
from moses_compat.lines.hashes import side_keys
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.opening import check_plausible
from phrasetool.disk.columns import DiskColumn, Partitions, even_cuts, parts_for
from phrasetool.errors import DataError, reason
from phrasetool.pipeline import run
from phrasetool.text_splitting import split_words
from phrasetool.watch import SILENT, Watch

SOURCE, TARGET = "source", "target"
ENDING = ".index"
_FORMAT = "phrasetool phrase index 1"
_BLOCK_BYTES = 1 << 17
_LEVEL = 1
_TAIL = 8
# Occurrences of phrases are sorted in parts that fit into this much memory.
_MEMORY = 1 << 28
_OCCURRENCE = np.dtype([("key", "<u8"), ("block", "<u4")])
_BLOCK = np.dtype([("offset", "<i8"), ("length", "<i8"), ("line", "<i8")])
# Smallest size of an entry in a compressed table, in bytes.
_ENTRY_BYTES = 8
_HASHED_PIECE = 1 << 22


@dataclass(frozen=True)
class TableLine:
    """A line of the table.

    Attributes:
        number: number of the line, from 1.
        fields: its fields without white space around them.
    """

    number: int
    fields: tuple[bytes, ...]


class PhraseIndex:
    """The index of a table, opened for reading.

    Args:
        path: the index.
        table: the table, for messages.

    Raises:
        DataError: the file is not such an index.
    """

    def __init__(self, path: str, table: str) -> None:
        self.table = table
        try:
            with open(path, "rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            size = int.from_bytes(self._bytes[-_TAIL:], "little")
            self.description: dict[str, Any] = json.loads(self._bytes[-_TAIL - size : -_TAIL])
            if self.description["format"] != _FORMAT:
                raise ValueError("another format")
            self._blocks = self._array("blocks", _BLOCK)
            self._keys = {side: self._array(f"{side} keys", np.dtype("<u8")) for side in (SOURCE, TARGET)}
            self._of_keys = {side: self._array(f"{side} blocks", np.dtype("<u4")) for side in (SOURCE, TARGET)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(path, "is not a phrase index of this version", remedy="build the index again") from error

    def _array(self, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        first, length = self.description["arrays"][name]
        return np.frombuffer(self._bytes, dtype, length, first)

    @property
    def lines(self) -> int:
        """Number of lines of the table."""
        return int(self.description["lines"])

    def entries(self, side: str, phrase: bytes) -> Iterator[TableLine]:
        """Yield the lines with a phrase, in the order of the table.

        Args:
            side: `source` or `target`.
            phrase: words separated by spaces.
        """
        words = split_words(phrase)
        joined = b" ".join(words)
        field = int(side == TARGET)
        text = np.frombuffer(joined + b" ||| " + joined + b" |||\n", np.uint8)
        key = side_keys(text, np.array([0, len(text)]), np.array([0]))[field, 0]
        first, last = (int(np.searchsorted(self._keys[side], key, bound)) for bound in ("left", "right"))
        for block in self._of_keys[side][first:last].tolist():
            for line in self._lines(block, max(words, key=len)):
                if len(line.fields) > 1 and split_words(line.fields[field]) == words:
                    yield line

    def containing(self, side: str, text: bytes, threads: int = 1) -> Iterator[TableLine]:
        """Yield the lines in which a side contains some text, in the order of the table.

        Args:
            side: `source` or `target`.
            text: the text, which may begin or end within a word.
            threads: number of threads.
        """
        field = int(side == TARGET)

        def search(block: int) -> list[TableLine]:
            lines = self._lines(block, text)
            return [line for line in lines if len(line.fields) > 1 and text in line.fields[field]]

        yield from chain.from_iterable(run(range(len(self._blocks)), search, threads))

    def _lines(self, number: int, text: bytes) -> Iterator[TableLine]:
        """Yield the lines of a block that contain some text anywhere."""
        block = self._blocks[number]
        offset = int(block["offset"])
        data: bytes = isal_zlib.decompress(self._bytes[offset : offset + int(block["length"])])
        line, counted, position = int(block["line"]), 0, data.find(text)
        while position >= 0:
            first = data.rfind(b"\n", 0, position) + 1
            last = data.find(b"\n", position)
            last = len(data) if last < 0 else last
            line += data.count(b"\n", counted, first)
            counted = first
            fields = data[first:last].removesuffix(b"\r").split(b"|||")
            yield TableLine(line + 1, tuple(field.strip(b" \t") for field in fields))
            position = data.find(text, last)


def phrase_index(
    table: str, path: str | None = None, scan: TableScan | None = None, watch: Watch = SILENT
) -> PhraseIndex:
    """Open the index of a table; build it first if it is missing or belongs to another table.

    Args:
        table: path of the table.
        path: path of the index; next to the table if None.
        scan: settings for reading the table.
        watch: progress listener.

    Raises:
        DataError: the table is damaged or is not a phrase table.
        PhraseToolError: the index cannot be written.
    """
    path = path or table + ENDING
    if os.path.exists(path):
        index = PhraseIndex(path, table)
        if _is_of(index.description["table"], table):
            return index
        watch.say(f"{path}: the table has changed; building its index again")
    check_writable(path)
    _build(table, path, replace(scan or TableScan(), block_bytes=_BLOCK_BYTES), watch)
    return PhraseIndex(path, table)


def _identity(path: str) -> dict[str, Any]:
    """Return the size, time and hash of a file.

    Raises:
        DataError: the file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        status = os.stat(path)
        with open(path, "rb") as file:
            while piece := file.read(_HASHED_PIECE):
                digest.update(piece)
    except OSError as error:
        raise DataError(path, reason(error)) from error
    return {"bytes": status.st_size, "time": status.st_mtime_ns, "hash": digest.hexdigest()}


def _is_of(identity: dict[str, Any], table: str) -> bool:
    """Return whether an index belongs to a table, which is hashed only if its time differs but its size does not."""
    status = os.stat(table)
    if identity["bytes"] != status.st_size:
        return False
    return bool(identity["time"] == status.st_mtime_ns or identity["hash"] == _identity(table)["hash"])


@dataclass(frozen=True)
class _PackedBlock:
    """A block of the index.

    Attributes:
        data: the compressed text.
        line: number of its first line, from 0.
        lines: number of its lines.
        keys: distinct keys of its sources and of its targets, ascending.
    """

    data: bytes
    line: int
    lines: int
    keys: tuple[npt.NDArray[np.uint64], ...]


def _packed(raw: RawBlock) -> _PackedBlock:
    keys = side_keys(raw.text, raw.line_offsets, np.arange(raw.lines))
    distinct = tuple(unique[unique > 0] for unique in map(np.unique, keys))
    return _PackedBlock(isal_zlib.compress(raw.text.tobytes(), _LEVEL), raw.first_entry, raw.lines, distinct)


def _build(table: str, path: str, scan: TableScan, watch: Watch) -> None:
    """Write the index of a table."""
    folder = os.path.dirname(os.path.abspath(path))
    identity = _identity(table)
    parts = parts_for(identity["bytes"] // _ENTRY_BYTES, 2 * _OCCURRENCE.itemsize, _MEMORY)
    occurrences = [Partitions(folder, _OCCURRENCE, even_cuts(1 << 62, parts)) for _ in (SOURCE, TARGET)]
    offset, lines, table_of_blocks = 0, 0, []
    with Input(table) as source, Output(path) as out, watch.file("index", source.size()) as progress:
        check_plausible(source, scan)
        for number, block in enumerate(run(scan.raw_blocks(source), _packed, scan.threads)):
            out.write(block.data)
            table_of_blocks.append((offset, len(block.data), block.line))
            offset += len(block.data)
            lines = block.line + block.lines
            for side, keys in zip(occurrences, block.keys, strict=True):
                # Partitions need non-negative numbers.
                side.add((keys >> np.uint64(2)).astype(np.int64), key=keys, block=np.full(len(keys), number, np.uint32))
            progress(source.position(), lines)
        arrays: dict[str, tuple[int, int]] = {}

        def put(name: str, pieces: Iterator[npt.NDArray[Any]], dtype: np.dtype[Any]) -> None:
            nonlocal offset
            out.write(bytes(-offset % dtype.alignment))
            offset += -offset % dtype.alignment
            first, length = offset, 0
            for piece in pieces:
                out.write(piece.astype(dtype, copy=False).tobytes())
                length += len(piece)
            offset += length * dtype.itemsize
            arrays[name] = first, length

        for name, side in zip((SOURCE, TARGET), occurrences, strict=True):
            blocks = DiskColumn(folder, np.uint32)
            put(f"{name} keys", _sorted_keys(side, blocks), np.dtype("<u8"))
            put(f"{name} blocks", blocks.pieces(), np.dtype("<u4"))
        put("blocks", iter([np.array(table_of_blocks, _BLOCK)]), _BLOCK)
        description = {"format": _FORMAT, "arrays": arrays, "lines": lines, "table": identity}
        text = json.dumps(description).encode()
        out.write(text + len(text).to_bytes(_TAIL, "little"))


def _sorted_keys(side: Partitions, blocks: DiskColumn) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the keys of a side in ascending order, and append their blocks to a column in the same order."""
    for part in range(len(side)):
        records = side.take(part)
        order = np.lexsort((records["block"], records["key"]))
        blocks.append(records["block"][order])
        yield records["key"][order]
