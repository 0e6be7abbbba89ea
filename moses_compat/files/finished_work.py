"""Storage of finished results next to the output until that is complete, so that interrupted work can be resumed.

A folder holds `settings.json`, which records the inputs and settings of the work, and for each pass files with the
results of some items, in order.  Files are written atomically and hold a digest of each item, so that the result of
another item is never used.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
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
from phrasetool.disk.folders import CONFIG, check_space, scratch_file
from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.pipeline import Runner, run

_SETTINGS, _BEGUN, _ENDING = "settings.json", ".begun-", ".done"
# Each file holds the results of this many seconds.
SECONDS = 5.0
_DIGEST_BYTES = 16
_LONGEST_NAME = 240
# Files of which each folder of a model or an external encoder has one or more.
_MODEL_FILES = (CONFIG, "modules.json", "model.safetensors")
_REMEDY = "delete the folder to start again"

Item = TypeVar("Item")
Result = TypeVar("Result")


def digest_of_bytes(*parts: Any) -> bytes:
    """Return a digest of bytes or arrays."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def fingerprint(path: str) -> str:
    """Return the size of a file and a digest of its content, as text.

    The digest is of the whole file: two binary language models of the same n-grams differ only after their vocabulary.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, functools.partial(hashlib.blake2b, digest_size=_DIGEST_BYTES))
            return f"{os.fstat(file.fileno()).st_size} bytes, {digest.hexdigest()}"
    except OSError as error:
        raise DataError(path, reason(error)) from error


def settings_of(request: Any, without: Collection[str]) -> dict[str, str]:
    """Return the values of the fields of a dataclass as text, by name; files and models are described by content.

    Args:
        request: a dataclass with the settings of the work.
        without: names of fields that do not affect results.

    Raises:
        DataError: a file cannot be read.
    """
    names = (field.name for field in fields(request) if field.name not in without)
    return {name.replace("_", " "): described(getattr(request, name)) for name in names}


def described(value: Any) -> str:
    """Describe a value in words; a file or a model is described by its content.

    Raises:
        DataError: a file cannot be read.
    """
    if isinstance(value, str) and os.path.isfile(value):
        return fingerprint(value)
    if isinstance(value, str) and any(os.path.isfile(os.path.join(value, name)) for name in _MODEL_FILES):
        return _model_fingerprint(Path(value))
    if isinstance(value, list | tuple):
        return ", ".join(map(described, value))
    if is_dataclass(value):
        return "; ".join(f"{name}: {text}" for name, text in settings_of(value, ()).items())
    return str(value)


def _model_fingerprint(folder: Path) -> str:
    """Return the fingerprint of a model's `config.json` if it has the checksums of all files, else of the folder."""
    from phrasetool.models.saved_model import CHECKSUMS
    from phrasetool.text_encoders.folder_safety import folder_identity

    with contextlib.suppress(OSError, ValueError, RecursionError):
        config = json.loads((folder / CONFIG).read_bytes())
        if isinstance(config, dict) and CHECKSUMS in config:
            return fingerprint(str(folder / CONFIG))
    try:
        return f"folder {folder_identity(folder)}"
    except OSError as error:
        raise DataError(folder, reason(error)) from error


class FinishedWork:
    """The finished results of one command; a context manager that removes them when the work succeeds.

    Args:
        output: the output file of the command.
        source: the input file of the command.
        settings: everything else that affects results, by the names used in messages; see `settings_of`.
        say: receives a message when work is resumed.

    Attributes:
        folder: the folder of the results.
        taken: number of items whose results were reused.

    Raises:
        PhraseToolError: input or output is not a regular file; or, on entering, the folder cannot be written, or
            belongs to another run.
    """

    def __init__(
        self, output: str, source: str, settings: Mapping[str, str], say: Callable[[str], None] = lambda text: None
    ) -> None:
        if scratch_place(output) is None or not os.path.isfile(source):
            raise PhraseToolError("finished results are kept next to the output: expected files to read and to write")
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
                # Without settings, the inputs of the results are unknown.
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
        """Open and lock the folder; wait for another run, which removes the folder when it ends."""
        while True:
            self.folder.mkdir(exist_ok=True)
            handle = os.open(self.folder, os.O_RDONLY)
            # A file system without locks raises OSError; then the run cannot wait for another.
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
            recorded = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(path, f"is damaged; {_REMEDY}") from error
        for name, value in self._settings.items():
            old = recorded.get(name) if isinstance(recorded, dict) else None
            if old != value:
                raise DataError(self.folder, f"belongs to another run: {name} was {old} and is now {value}; {_REMEDY}")

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
        """Do the same as `pipeline.run`, but reuse stored results.

        Args:
            name: name of this pass.
            digest: identifies an item.
            items: the items of work, in order.
            work: computes the result of an item.
            threads: number of worker threads.
            keep: the part of a result to store, which `packed_values` must be able to pack.
            again: restores a result from its item and the stored part.
            runner: runner that executes the work; threads if None.

        Raises:
            DataError: an item has changed, or a file is damaged.
            PhraseToolError: results cannot be stored.
        """
        rest = iter(items)
        number = 0
        for expected, kept in self._stored(name):
            item = next(rest, None)
            if item is None or digest(item) != expected:
                raise DataError(self.folder, f"was made from other content of {self._source}; {_REMEDY}")
            number += 1
            self.taken += 1
            yield again(item, kept)

        def with_digest(item: Item) -> tuple[bytes, Result]:
            return digest(item), work(item)

        waiting: list[tuple[bytes, Any]] = []
        since = time.monotonic()
        for item_digest, result in (runner or run)(rest, with_digest, threads):
            waiting.append((item_digest, keep(result)))
            if time.monotonic() - since >= SECONDS:
                self._keep(name, number, waiting)
                number += len(waiting)
                waiting, since = [], time.monotonic()
            yield result
        if waiting:
            self._keep(name, number, waiting)

    def runner(self, name: str, *inputs: Any, by: Runner | None = None) -> Runner:
        """Return a runner for work on arrays that stores and reuses results, as `run` does.

        Args:
            name: name of this pass.
            inputs: arrays that all results depend on.
            by: runner that executes the work; threads if None.
        """

        def run_arrays(blocks: Iterable[Any], work: Callable[[Any], Result], threads: int) -> Iterator[Result]:
            return self.run(name, lambda array: digest_of_bytes(array, *inputs), blocks, work, threads, runner=by)

        return run_arrays

    def _stored(self, name: str) -> Iterator[tuple[bytes, Any]]:
        """Yield the digests of finished items and the stored parts of their results, in order."""
        count = 0
        while (path := self._path(name, count)).exists():
            items = _read(path)
            yield from items
            count += len(items)

    def _keep(self, name: str, first: int, waiting: list[tuple[bytes, Any]]) -> None:
        data = packed(waiting)
        self._write(self._path(name, first), digest_of_bytes(data) + data)

    def _path(self, name: str, first: int) -> Path:
        return self.folder / f"{name}-{first:09}{_ENDING}"

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file atomically and flush it to disk, so that it survives a power failure."""
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
    """Return the settings of an interrupted run; empty if there is none, or if they are damaged."""
    try:
        settings = json.loads((_folder_of(output) / _SETTINGS).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def forget_finished(output: str) -> None:
    """Remove the stored results of an interrupted run of an output that is now complete."""
    folder = _folder_of(output)
    with contextlib.suppress(OSError):
        # A folder without settings is left from a run that ended early.
        if (folder / _SETTINGS).is_file() or all(path.name.startswith(_BEGUN) for path in folder.iterdir()):
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the results before the settings: if this is interrupted, no result is left without its settings."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != _SETTINGS:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _folder_of(output: str) -> Path:
    folder, name = os.path.split(output)
    return Path(folder, f"{os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])}.unfinished")


def _read(path: Path) -> list[tuple[bytes, Any]]:
    """Return the digests and results in a file.

    Raises:
        DataError: the file is damaged.
    """
    try:
        data = path.read_bytes()
        if digest_of_bytes(data[_DIGEST_BYTES:]) == data[:_DIGEST_BYTES]:
            items: Any = unpacked(data[_DIGEST_BYTES:])
            if not isinstance(items, list) or any(not isinstance(item, tuple) or len(item) != 2 for item in items):
                raise ValueError("unexpected content")
            return items
    except OSError as error:
        raise DataError(path, reason(error)) from error
    except ValueError as error:
        raise DataError(path, f"is damaged ({error}); {_REMEDY}") from error
    raise DataError(path, f"is damaged; {_REMEDY}")
