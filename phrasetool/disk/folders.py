"""Temporary files and folders, and output folders that are replaced as a whole, even if the process is killed.

**Temporary** files and folders are locked (`flock`) as long as their process lives.  One without a lock is dead: the
next process that needs one of the same name, but for the letters in its middle, removes it.  Where a file system has no
locks, nothing is removed.

**Output folders** are checked before work begins.  `config.json` is what makes a folder a model.  Where there is none
yet, the files of the new model move in one by one, that one last.  Where there is one, a second folder is made next to
it, of the new files and links to all others, and the two change names in one step (`renameat2` with
`RENAME_EXCHANGE`).  Where this is not possible (another system, a file system without it, a folder whose parent cannot
be written, or in which this process stands), files are replaced one by one, and the old ones are kept until the last:
`restore` puts them back.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phrasetool.errors import PhraseToolError, reason

# What `tempfile` puts between prefix and suffix.
_LETTERS = "[a-z0-9_]{8}"
# Bytes of a name, of which these letters take eight.
_LONGEST_NAME = 255
CONFIG = "config.json"
# Prefixes of files that are being replaced, and of new folders.
_REPLACED = ".replaced"
_STAGE = ".staged-"
# Of linux/fs.h and fcntl.h.
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


def scratch_file(folder: str | os.PathLike[str] | None, prefix: str, suffix: str = "") -> tuple[int, str]:
    """Make an empty file under a new name; those of the same prefix and suffix that a killed process left are removed.

    Args:
        folder: where; None for the system's folder of temporary files.
        prefix, suffix: of its name; the prefix is cut where the name would be too long.

    Returns:
        Its descriptor, open for writing, and its path.  The file is locked until the descriptor is closed: rename or
        remove it before.

    Raises:
        OSError: it cannot be made.
    """
    place, prefix = _place(folder), _short(prefix, suffix)
    remove_dead(place, prefix, suffix)
    while True:
        handle, path = tempfile.mkstemp(suffix, prefix, place)
        if _still_ours(handle, path):
            return handle, path
        os.close(handle)


@contextlib.contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None, prefix: str, suffix: str = "") -> Iterator[str]:
    """A folder until the block ends; as `scratch_file`, but removed at the end if it is still there.

    Yields:
        Its path.

    Raises:
        OSError: it cannot be made.
    """
    place, prefix = _place(parent), _short(prefix, suffix)
    remove_dead(place, prefix, suffix)
    while True:
        path = tempfile.mkdtemp(suffix, prefix, place)
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        if _still_ours(handle, path):
            break
        os.close(handle)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)
        _remove_files(path)


def _remove_files(folder: str) -> None:
    """Remove a folder of files that is still there: this takes one descriptor, and `shutil.rmtree` more than may be
    left of them."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _place(folder: str | os.PathLike[str] | None) -> str:
    return tempfile.gettempdir() if folder is None else os.fspath(folder)


def _short(prefix: str, suffix: str) -> str:
    """As much of the prefix as a name has room for."""
    room = _LONGEST_NAME - 8 - len(os.fsencode(suffix))
    return os.fsdecode(os.fsencode(prefix)[:room])


def _still_ours(handle: int, path: str) -> bool:
    """Lock what was just made; not, if another process has taken it for dead before it was locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        # No locks here, so no process removes anything.
        return True
    return _is(handle, path)


def _is(handle: int, path: str) -> bool:
    """Whether the path still leads to what is open."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def remove_dead(folder: str | os.PathLike[str], prefix: str, suffix: str = "") -> None:
    """Remove what killed processes left of these names; see `scratch_file`, which does so, too."""
    pattern = re.compile(re.escape(prefix) + _LETTERS + re.escape(suffix))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if pattern.fullmatch(name):
                _remove_if_dead(Path(folder, name))


def _remove_if_dead(path: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(handle, str(path)):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
        finally:
            os.close(handle)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that could not be made, or not be written to; nothing is left there.

    Raises:
        PhraseToolError: why.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise PhraseToolError(f"{path}: is a file, expected a folder to write to")
    there = _existing(path)
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, f"{there} is not a folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error


def check_space(folder: str | os.PathLike[str], needed: int) -> None:
    """Refuse a folder on a disk with too little room.

    Args:
        folder: that will be written to.
        needed: bytes.

    Raises:
        PhraseToolError: how much is free, and how much is needed.
    """
    free = shutil.disk_usage(_existing(Path(folder))).free
    if free < needed:
        raise PhraseToolError(
            f"{folder}: {_megabytes(free)} are free on its disk, but what is written there takes up to "
            f"{_megabytes(needed)}; make room, or name a folder on another disk"
        )


def _existing(path: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A scratch folder whose files and folders get into `folder` when the block ends well, and vanish when not.

    Files of `folder` that have other names stay.

    Yields:
        Its path.

    Raises:
        PhraseToolError: the folder cannot be written; what was there still is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        restore(folder)
        with scratch_folder(folder, _STAGE) as name:
            stage = Path(name)
            yield stage
            for file in stage.iterdir():
                if file.is_file():
                    os.chmod(file, 0o644)
            if not (folder / CONFIG).exists():
                _move(stage, folder)
            elif not _exchanged(stage, folder):
                _replace(stage, folder)
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write: {reason(error)}") from error


def restore(folder: Path) -> None:
    """Put back the files that a killed process was about to replace.

    Raises:
        OSError: they cannot be moved; they are kept.
    """
    if (folder / _REPLACED).is_dir():
        _move(folder / _REPLACED, folder)
        shutil.rmtree(folder / _REPLACED, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; false, and nothing is done, where the system does not."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    status: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return status == 0


def _exchanged(stage: Path, folder: Path) -> bool:
    """Replace a folder by one that is made next to it; return whether this was possible."""
    place = Path(os.path.realpath(folder))
    here = Path(os.path.realpath(os.curdir))
    if place == here or place in here.parents:
        return False
    # Whatever is in the way of a second folder is in the way of no other way.
    with contextlib.suppress(OSError), scratch_folder(place.parent, f".{place.name}.", ".staged") as name:
        copy = Path(name)
        new = {file.name for file in stage.iterdir()}
        shutil.copytree(
            place, copy, symlinks=True, copy_function=_link, dirs_exist_ok=True,
            ignore=lambda path, names: [n for n in names if n in new or n == stage.name] if Path(path) == place else [],
        )  # fmt: skip
        _link_all(stage, copy)
        # Then the old one has the other name, and goes with the block; or the next run's block, after a kill.
        return exchange(copy, place)
    return False


def _replace(stage: Path, folder: Path) -> None:
    """Replace files one by one, and keep the old ones until all are."""
    with scratch_folder(folder, _STAGE) as name:
        kept = Path(name) / _REPLACED
        kept.mkdir()
        for file in stage.iterdir():
            old = folder / file.name
            if old.is_dir():
                shutil.copytree(old, kept / file.name, symlinks=True, copy_function=_link)
            elif old.exists():
                _link(old, kept / file.name)
        os.replace(kept, folder / _REPLACED)
        try:
            _move(stage, folder)
        except OSError:
            restore(folder)
            raise
        os.replace(folder / _REPLACED, kept)


def _move(stage: Path, folder: Path) -> None:
    """Move files and folders, `config.json` last."""
    for file in sorted(stage.iterdir(), key=lambda file: file.name == CONFIG):
        if file.is_dir():
            # A folder cannot take the place of one that holds something.
            shutil.rmtree(folder / file.name, ignore_errors=True)
        os.replace(file, folder / file.name)


def _link_all(stage: Path, folder: Path) -> None:
    for file in stage.iterdir():
        if file.is_dir():
            shutil.copytree(file, folder / file.name, copy_function=_link)
        else:
            _link(file, folder / file.name)


def _link(file: str | Path, copy: str | Path) -> None:
    """The same file under another name; a copy where the file system has no second names."""
    try:
        os.link(file, copy, follow_symlinks=False)
    except OSError:
        shutil.copy2(file, copy)
