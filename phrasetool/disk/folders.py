"""Temporary files and folders, and output folders that are replaced as a whole, even if the process is killed.

**Temporary** files and folders are locked (`flock`) as long as their process lives.  One without a lock is dead: the
next process that creates one with the same prefix and suffix removes it.  On a file system without locks, nothing is
removed.

**Output folders** are checked before work begins.  A folder is a model if it contains `config.json`.  If it contains
none yet, the files of the new model are moved into it one by one, `config.json` last.  If it does, a second folder is
created next to it, with the new files and links to all others, and the two folders exchange names atomically
(`renameat2` with `RENAME_EXCHANGE`).  Where this is impossible (a system or file system without it, a parent folder
that is not writable, or a folder that contains the process's current directory), files are replaced one by one, and the
old ones are kept until all are replaced: `restore` puts them back.
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

# The random letters that `tempfile` inserts between prefix and suffix.
_LETTERS = "[a-z0-9_]{8}"
# Maximum length of a file name in bytes; the random letters take eight of them.
_LONGEST_NAME = 255
CONFIG = "config.json"
# Prefixes of files that are being replaced, and of new folders.
_REPLACED = ".replaced"
_STAGE = ".staged-"
# From linux/fs.h and fcntl.h.
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


def scratch_file(folder: str | os.PathLike[str] | None, prefix: str, suffix: str = "") -> tuple[int, str]:
    """Create an empty file under a new name; remove files that killed processes left with this prefix and suffix.

    Args:
        folder: parent folder; None for the system's temporary folder.
        prefix, suffix: beginning and end of the file name; the prefix is truncated if the name would be too long.

    Returns:
        The file's descriptor, open for writing, and its path.  The file is locked until the descriptor is closed:
        rename or remove it before.

    Raises:
        OSError: the file cannot be created.
    """
    directory, prefix = _place(folder), _short(prefix, suffix)
    remove_dead(directory, prefix, suffix)
    while True:
        handle, path = tempfile.mkstemp(suffix, prefix, directory)
        if _lock_new(handle, path):
            return handle, path
        os.close(handle)


@contextlib.contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None, prefix: str, suffix: str = "") -> Iterator[str]:
    """Create a temporary folder as `scratch_file` creates a file; it is removed when the block ends.

    Yields:
        The path of the folder.

    Raises:
        OSError: the folder cannot be created.
    """
    directory, prefix = _place(parent), _short(prefix, suffix)
    remove_dead(directory, prefix, suffix)
    while True:
        path = tempfile.mkdtemp(suffix, prefix, directory)
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        if _lock_new(handle, path):
            break
        os.close(handle)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)
        _remove_files(path)


def _remove_files(folder: str) -> None:
    """Remove a folder of files, if it still exists, with one file descriptor.

    `shutil.rmtree` needs more descriptors than may be left.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _place(folder: str | os.PathLike[str] | None) -> str:
    return tempfile.gettempdir() if folder is None else os.fspath(folder)


def _short(prefix: str, suffix: str) -> str:
    """Truncate the prefix to the maximum length of a file name."""
    room = _LONGEST_NAME - 8 - len(os.fsencode(suffix))
    return os.fsdecode(os.fsencode(prefix)[:room])


def _lock_new(handle: int, path: str) -> bool:
    """Lock a new file or folder; return False if another process removed it as dead before it was locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        # The file system has no locks, so no process removes anything.
        return True
    return _is(handle, path)


def _is(handle: int, path: str) -> bool:
    """Return whether the path still refers to the open file or folder."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def remove_dead(folder: str | os.PathLike[str], prefix: str, suffix: str = "") -> None:
    """Remove the files and folders that killed processes left with this prefix and suffix, as `scratch_file` does."""
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
    """Check that a folder can be created and written to, without leaving anything behind.

    Raises:
        PhraseToolError: the folder cannot be created or written to.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise PhraseToolError(f"{path}: is a file, expected a folder to write to")
    existing = _existing(path)
    try:
        if not existing.is_dir():
            raise NotADirectoryError(0, f"{existing} is not a folder")
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot write: {reason(error)}") from error


def check_space(folder: str | os.PathLike[str], needed: int) -> None:
    """Check that the disk of a folder has enough free space.

    Args:
        folder: folder that will be written to; need not exist yet.
        needed: required space in bytes.

    Raises:
        PhraseToolError: less space is free than needed.
    """
    free = shutil.disk_usage(_existing(Path(folder))).free
    if free < needed:
        raise PhraseToolError(
            f"{folder}: {_megabytes(free)} are free on its disk, but what is written there takes up to "
            f"{_megabytes(needed)}; make room, or name a folder on another disk"
        )


def _existing(path: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Create a scratch folder whose contents are moved into `folder` if the block succeeds, and discarded if not.

    Files of `folder` that have other names are kept.

    Yields:
        The path of the scratch folder.

    Raises:
        PhraseToolError: the folder cannot be written to; its previous contents are unchanged.
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
    """Restore the files that a killed process was replacing.

    Raises:
        OSError: the files cannot be moved; the saved copies are kept.
    """
    if (folder / _REPLACED).is_dir():
        _move(folder / _REPLACED, folder)
        shutil.rmtree(folder / _REPLACED, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return False, and change nothing, if this is not possible."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    status: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return status == 0


def _exchanged(stage: Path, folder: Path) -> bool:
    """Replace a folder by one that is created next to it; return whether this was possible."""
    real = Path(os.path.realpath(folder))
    current = Path(os.path.realpath(os.curdir))
    if real == current or real in current.parents:
        return False
    # Errors are suppressed because the caller falls back to replacing files one by one.
    with contextlib.suppress(OSError), scratch_folder(real.parent, f".{real.name}.", ".staged") as name:
        copy = Path(name)
        new = {file.name for file in stage.iterdir()}
        shutil.copytree(
            real, copy, symlinks=True, copy_function=_link, dirs_exist_ok=True,
            ignore=lambda path, names: [n for n in names if n in new or n == stage.name] if Path(path) == real else [],
        )  # fmt: skip
        _link_all(stage, copy)
        # The old folder now has the scratch name: it is removed with the block or, after a kill, by the next run.
        return exchange(copy, real)
    return False


def _replace(stage: Path, folder: Path) -> None:
    """Replace files one by one, and keep the old ones until all are replaced."""
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
            # `os.replace` cannot replace a folder that is not empty.
            shutil.rmtree(folder / file.name, ignore_errors=True)
        os.replace(file, folder / file.name)


def _link_all(stage: Path, folder: Path) -> None:
    for file in stage.iterdir():
        if file.is_dir():
            shutil.copytree(file, folder / file.name, copy_function=_link)
        else:
            _link(file, folder / file.name)


def _link(file: str | Path, copy: str | Path) -> None:
    """Link a file under a second name; copy it if the file system has no hard links."""
    try:
        os.link(file, copy, follow_symlinks=False)
    except OSError:
        shutil.copy2(file, copy)
