"""What was made of the blocks of a table, kept beside an output until that is complete: interrupted work goes on.

A folder holds `settings.json`, which says what the work depends on, and for each pass through the table files of what
was made of some blocks, in order.  A file is there as a whole or not at all, and holds a digest of each block: what was
made of another text is never taken.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from moses_compat.files.names import scratch_place
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import scan_lines
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool import __version__
from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.disk.scratch import scratch_file
from phrasetool.disk.writable import check_space
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.pipeline import run

_SETTINGS, _BEGUN, _ENDING = "settings.json", ".begun-", ".blocks"
# What was made is kept when it is so old, or so large.
SECONDS, _BYTES = 5.0, 1 << 26
_HEAD_BYTES = 1 << 20
_DIGEST_BYTES = 16
_LONGEST_NAME = 240
_REMEDY = "delete the folder to begin anew"

Item = TypeVar("Item")
Made = TypeVar("Made")


def fingerprint(path: str) -> str:
    """The size of a file and a digest of its beginning.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            head = hashlib.blake2b(file.read(_HEAD_BYTES), digest_size=_DIGEST_BYTES).hexdigest()
            return f"{os.fstat(file.fileno()).st_size} bytes, {head}"
    except OSError as error:
        raise DataError(path, reason(error)) from error


def settings_of(request: Any, without: Collection[str]) -> dict[str, str]:
    """What the fields of a dataclass say, by their names; files and models by what they hold.

    Args:
        request: what is wanted.
        without: fields that results do not depend on.

    Raises:
        DataError: a file cannot be read.
    """
    names = (field.name for field in fields(request) if field.name not in without)
    return {name.replace("_", " "): _described(getattr(request, name)) for name in names}


def _described(value: Any) -> str:
    if isinstance(value, str) and os.path.isfile(value):
        return fingerprint(value)
    if isinstance(value, str) and os.path.isfile(config := os.path.join(value, "config.json")):
        return fingerprint(config)
    if isinstance(value, list | tuple):
        return ", ".join(map(_described, value))
    if is_dataclass(value):
        return "; ".join(f"{name}: {text}" for name, text in settings_of(value, ()).items())
    return str(value)


class FinishedBlocks:
    """The finished blocks of one command; use as a context manager, which removes them when the block ends well.

    Args:
        output: the file that is made of them.
        table: the table.
        settings: what else the results depend on, by the names that messages call it; see `settings_of`.

    Raises:
        PhraseToolError: there is no place beside the output; or, on entering, the folder cannot be written, is of
            another run, or another process is at work with it.
    """

    def __init__(self, output: str, table: str, settings: Mapping[str, str]) -> None:
        if scratch_place(output) is None or not os.path.isfile(table):
            raise PhraseToolError("what is finished is kept beside the output: expected files to read and to write")
        self.folder = _folder_of(output)
        self._table = table
        self._settings = {
            **settings, "table": fingerprint(table), "version of phrasetool": __version__,
        }  # fmt: skip
        self._lock = -1
        self.blocks = 0

    def __enter__(self) -> FinishedBlocks:
        try:
            new = not self.folder.exists()
            self.folder.mkdir(exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if new or not (self.folder / _SETTINGS).exists():
                check_space(self.folder, os.path.getsize(self._table))
                self._write(self.folder / _SETTINGS, json.dumps(self._settings, indent=1).encode())
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        self._compare()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _compare(self) -> None:
        """Refuse the folder of another run."""
        path = self.folder / _SETTINGS
        try:
            found = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(path, f"is damaged; {_REMEDY}") from error
        for name in self._settings:
            there = found.get(name) if isinstance(found, dict) else None
            if there != self._settings[name]:
                raise DataError(
                    self.folder, f"is of another run: {name} was {there}, and is {self._settings[name]}; {_REMEDY}"
                )

    def results(
        self,
        name: str,
        items: Iterable[Item],
        work: Callable[[Item], tuple[SourceLook | None, tuple[RawBlock, Made]]],
        order: SourceOrder,
        threads: int,
    ) -> Iterator[tuple[SourceLook | None, tuple[RawBlock, Made]]]:
        """What is made of all blocks, in order: read where it is there, else made and kept.

        Args:
            name: of this pass through the table.
            items: the blocks, each first in a tuple with what else belongs to it.
            work: makes something of a block that can be packed, see `packed_values`.
            order: looks at blocks whose results were read.
            threads: to work on.

        Raises:
            DataError: the table is not the one that results were made of, or a file is damaged.
            PhraseToolError: results cannot be kept.
        """
        rest = iter(items)
        number = 0
        for digest, made in self._there(name):
            item: Any = next(rest, None)
            raw = item[0] if item else None
            if raw is None or _digest_of(raw) != digest:
                raise DataError(self.folder, f"was made of another table than {self._table} is now; {_REMEDY}")
            number += 1
            self.blocks += 1
            yield order.look(raw, scan_lines(raw.text, raw.scores, line_offsets=raw.line_offsets)), (raw, made)

        def with_digest(item: Item) -> tuple[bytes, tuple[SourceLook | None, tuple[RawBlock, Made]]]:
            found = work(item)
            return _digest_of(found[1][0]), found

        waiting: list[tuple[bytes, Made]] = []
        size, since = 0, time.monotonic()
        for digest, found in run(rest, with_digest, threads):
            raw, made = found[1]
            waiting.append((digest, made))
            size += len(raw.text)
            if size >= _BYTES or time.monotonic() - since >= SECONDS:
                self._keep(name, number, waiting)
                number += len(waiting)
                waiting, size, since = [], 0, time.monotonic()
            yield found
        if waiting:
            self._keep(name, number, waiting)

    def _there(self, name: str) -> Iterator[tuple[bytes, Any]]:
        """Digests of finished blocks and what was made of them, in order."""
        done = 0
        while (path := self._path(name, done)).exists():
            found = _unpacked(path)
            yield from found
            done += len(found)

    def _keep(self, name: str, first: int, waiting: list[tuple[bytes, Any]]) -> None:
        data = packed(waiting)
        self._write(self._path(name, first), hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest() + data)

    def _path(self, name: str, first: int) -> Path:
        return self.folder / f"{name}-{first:09}{_ENDING}"

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file that outlives a power cut, or none."""
        handle, temporary = -1, None
        try:
            handle, temporary = scratch_file(self.folder, _BEGUN)
            with open(handle, "wb", closefd=False) as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.replace(temporary, path)
            temporary = None
            os.fsync(self._lock)
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        finally:
            if temporary:
                os.unlink(temporary)
            if handle >= 0:
                os.close(handle)


def forget_finished(output: str) -> None:
    """Remove what an interrupted run kept of a file that is complete now."""
    folder = _folder_of(output)
    if (folder / _SETTINGS).is_file():
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(output: str) -> Path:
    place, name = os.path.split(output)
    return Path(place, f"{os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])}.unfinished")


def _digest_of(raw: RawBlock) -> bytes:
    return hashlib.blake2b(raw.text.data, digest_size=_DIGEST_BYTES).digest()


def _unpacked(path: Path) -> list[tuple[bytes, Any]]:
    """What a file holds.

    Raises:
        DataError: it is damaged.
    """
    try:
        data = path.read_bytes()
        if hashlib.blake2b(data[_DIGEST_BYTES:], digest_size=_DIGEST_BYTES).digest() == data[:_DIGEST_BYTES]:
            found: list[tuple[bytes, Any]] = unpacked(data[_DIGEST_BYTES:])
            return found
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except ValueError as error:
        raise DataError(path, f"is damaged ({error}); {_REMEDY}") from error
    raise DataError(path, f"is damaged; {_REMEDY}")


def follow_blocks(
    name: str,
    items: Iterable[Item],
    work: Callable[[Item], tuple[SourceLook | None, Made]],
    order: SourceOrder,
    scan: TableScan,
) -> Iterator[tuple[RawBlock, Made]]:
    """Each block of a table with what is made of it, in order.

    Args:
        name: of this pass through the table, where several are made.
        items: the blocks, each first in a tuple with what else belongs to it.
        work: makes something of a block, and looks at its sources; called by `scan.threads` threads.
        order: of the sources.
        scan: how the table is read; with `finished`, what was made before is not made again.

    Raises:
        DataError: as `SourceOrder.follow`, `FinishedBlocks.results` and `work`.
    """

    def done(item: Any) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
        look, made = work(item)
        return look, (item[0], made)

    if scan.finished is None:
        return order.follow(run(items, done, scan.threads))
    return order.follow(scan.finished.results(name, items, done, order, scan.threads))
