"""What is finished of long work, kept beside its output until that is complete: interrupted work goes on.

A folder holds `settings.json`, which says what the work depends on, and for each pass files of what was made of some
items, in order.  A file is there as a whole or not at all, and holds a digest of each item: what was made of another
one is never taken.
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

from moses_compat.files.paths import scratch_place
from phrasetool import __version__
from phrasetool.disk.folders import check_space, scratch_file
from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.pipeline import Runner, run

_SETTINGS, _BEGUN, _ENDING = "settings.json", ".begun-", ".done"
# What was made in so many seconds is kept in one file.
SECONDS = 5.0
_HEAD_BYTES = 1 << 20
_DIGEST_BYTES = 16
_LONGEST_NAME = 240
_REMEDY = "delete the folder to start again"

Item = TypeVar("Item")
Result = TypeVar("Result")


def digest_of_bytes(*parts: Any) -> bytes:
    """Of bytes, or of arrays."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def fingerprint(path: str) -> str:
    """The size of a file and a digest of its beginning.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            head = digest_of_bytes(file.read(_HEAD_BYTES)).hex()
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
    return {name.replace("_", " "): described(getattr(request, name)) for name in names}


def described(value: Any) -> str:
    """A value in words, a file or a model by what it holds.

    Raises:
        DataError: a file cannot be read.
    """
    if isinstance(value, str) and os.path.isfile(value):
        return fingerprint(value)
    if isinstance(value, str) and os.path.isfile(config := os.path.join(value, "config.json")):
        return fingerprint(config)
    if isinstance(value, list | tuple):
        return ", ".join(map(described, value))
    if is_dataclass(value):
        return "; ".join(f"{name}: {text}" for name, text in settings_of(value, ()).items())
    return str(value)


class FinishedWork:
    """What is finished of the work of one command; use as a context manager, which removes it when all ends well.

    Args:
        output: the file that is made of it.
        source: the file that it is made from.
        settings: what else it depends on, by the names that messages call it; see `settings_of`.
        say: is told that work goes on.

    Attributes:
        folder: where it is.
        taken: how many items were found finished.

    Raises:
        PhraseToolError: there is no place beside the output; or, on entering, the folder cannot be written, or is of
            another run.
    """

    def __init__(
        self, output: str, source: str, settings: Mapping[str, str], say: Callable[[str], None] = lambda text: None
    ) -> None:
        if scratch_place(output) is None or not os.path.isfile(source):
            raise PhraseToolError("what is finished is kept beside the output: expected files to read and to write")
        self.folder = _folder_of(output)
        self._source, self._say = source, say
        self._settings = {**settings, "input": fingerprint(source), "version of phrasetool": __version__}
        self._lock = -1
        self.taken = 0

    def __enter__(self) -> FinishedWork:
        try:
            self._lock = self._locked()
        except OSError as error:
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}") from error
        try:
            if not (self.folder / _SETTINGS).exists():
                # Nobody knows what else was made of.
                for stale in self.folder.glob(f"*{_ENDING}"):
                    stale.unlink()
                check_space(self.folder, os.path.getsize(self._source))
                self._write(self.folder / _SETTINGS, json.dumps(self._settings, indent=1).encode())
            self._compare()
        except PhraseToolError:
            os.close(self._lock)
            raise
        if any(self.folder.glob(f"*{_ENDING}")):
            self._say(f"going on from {self.folder}")
        return self

    def _locked(self) -> int:
        """Open the folder when no other run is at work there, which removes it in the end."""
        while True:
            self.folder.mkdir(exist_ok=True)
            handle = os.open(self.folder, os.O_RDONLY)
            # Where there are no locks, there is nothing to wait for.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), self.folder.stat()):
                    return handle
            os.close(handle)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            _remove(self.folder)
        os.close(self._lock)

    def _compare(self) -> None:
        """Refuse the folder of another run."""
        path = self.folder / _SETTINGS
        try:
            found = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(path, f"is damaged; {_REMEDY}") from error
        for name, value in self._settings.items():
            there = found.get(name) if isinstance(found, dict) else None
            if there != value:
                raise DataError(self.folder, f"is of another run: {name} was {there}, and is {value}; {_REMEDY}")

    def run(
        self,
        name: str,
        digest: Callable[[Item], bytes],
        items: Iterable[Item],
        work: Callable[[Item], Result],
        threads: int,
        keep: Callable[[Result], Any] = lambda result: result,
        again: Callable[[Item, Any], Result] = lambda item, kept: kept,
        runner: Runner | None = None,
    ) -> Iterator[Result]:
        """As `pipeline.run`, but what was finished before is read.

        Args:
            name: of this pass.
            digest: tells items apart.
            items: what there is to do, in order.
            work: makes the result of an item.
            threads: to work on.
            keep: what of a result is kept; something that `packed_values` can pack.
            again: makes a result of what was kept.
            runner: has the work done; threads if None.

        Raises:
            DataError: an item is another one than it was, or a file is damaged.
            PhraseToolError: results cannot be kept.
        """
        rest = iter(items)
        number = 0
        for wanted, kept in self._there(name):
            item = next(rest, None)
            if item is None or digest(item) != wanted:
                raise DataError(self.folder, f"was made of another input than {self._source} is now; {_REMEDY}")
            number += 1
            self.taken += 1
            yield again(item, kept)

        def with_digest(item: Item) -> tuple[bytes, Result]:
            return digest(item), work(item)

        waiting: list[tuple[bytes, Any]] = []
        since = time.monotonic()
        for found, result in (runner or run)(rest, with_digest, threads):
            waiting.append((found, keep(result)))
            if time.monotonic() - since >= SECONDS:
                self._keep(name, number, waiting)
                number += len(waiting)
                waiting, since = [], time.monotonic()
            yield result
        if waiting:
            self._keep(name, number, waiting)

    def runner(self, name: str, *inputs: Any, by: Runner | None = None) -> Runner:
        """Runs work on arrays, as `run` does.

        Args:
            name: of this pass.
            inputs: arrays that all results depend on.
            by: has the work done; threads if None.
        """

        def run_arrays(blocks: Iterable[Any], work: Callable[[Any], Result], threads: int) -> Iterator[Result]:
            return self.run(name, lambda array: digest_of_bytes(array, *inputs), blocks, work, threads, runner=by)

        return run_arrays

    def _there(self, name: str) -> Iterator[tuple[bytes, Any]]:
        """Digests of finished items and what was kept of them, in order."""
        done = 0
        while (path := self._path(name, done)).exists():
            found = _read(path)
            yield from found
            done += len(found)

    def _keep(self, name: str, first: int, waiting: list[tuple[bytes, Any]]) -> None:
        data = packed(waiting)
        self._write(self._path(name, first), digest_of_bytes(data) + data)

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


def settings_before(output: str) -> dict[str, Any]:
    """What the settings of an interrupted run say; nothing if there was none, or they are damaged."""
    try:
        found = json.loads((_folder_of(output) / _SETTINGS).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def forget_finished(output: str) -> None:
    """Remove what an interrupted run kept of a file that is complete now."""
    folder = _folder_of(output)
    with contextlib.suppress(OSError):
        # Without settings, an early end has left it.
        if (folder / _SETTINGS).is_file() or all(path.name.startswith(_BEGUN) for path in folder.iterdir()):
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove what is finished before what tells of what it was made: if this is interrupted, nothing is mistaken."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != _SETTINGS:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _folder_of(output: str) -> Path:
    place, name = os.path.split(output)
    return Path(place, f"{os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])}.unfinished")


def _read(path: Path) -> list[tuple[bytes, Any]]:
    """What a file holds.

    Raises:
        DataError: it is damaged.
    """
    try:
        data = path.read_bytes()
        if digest_of_bytes(data[_DIGEST_BYTES:]) == data[:_DIGEST_BYTES]:
            found: Any = unpacked(data[_DIGEST_BYTES:])
            if not isinstance(found, list) or any(not isinstance(item, tuple) or len(item) != 2 for item in found):
                raise ValueError("it holds something else")
            return found
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except ValueError as error:
        raise DataError(path, f"is damaged ({error}); {_REMEDY}") from error
    raise DataError(path, f"is damaged; {_REMEDY}")
