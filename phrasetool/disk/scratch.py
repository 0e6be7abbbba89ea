"""Files and folders that are needed for a while, and go even if the process that made them was killed.

Each is locked (`flock`) as long as its process lives.  One without a lock is dead: whoever next wants one of the
same name, but for the letters in its middle, removes it.  Where a file system has no locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# What `tempfile` puts between prefix and suffix.
_LETTERS = "[a-z0-9_]{8}"
# Bytes of a name, of which these letters take eight.
_LONGEST_NAME = 255


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
