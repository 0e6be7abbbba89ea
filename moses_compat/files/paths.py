"""Functions on paths (standard streams, pipes, the same file under two names), and notices about files being read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable

from phrasetool.errors import PhraseToolError

# Each listener is called with a message, such as `train.de: a byte order mark at its start was left out`.
listeners: list[Callable[[str], None]] = []

# Device and inode of each pipe that was read by name; None unless `read_pipes_once` was called.  A second reader of a
# pipe would get only the rest of the data, or nothing.
read_pipes: set[tuple[int, int]] | None = None

# Files that were discarded because the reader of a pipe disappeared while they were written.
abandoned: list[str] = []

STANDARD = "-"
# Names and endings of the files of model folders.
_MODEL_FILES = ("config.json", "training.jsonl", "tokenizer.json", "tokenizer_config.json", "modules.json", "vocab.txt")
_MODEL_ENDINGS = (".safetensors", ".vocab")


def read_pipes_once() -> None:
    """Make `Input` refuse to read a pipe a second time from now on."""
    global read_pipes
    read_pipes = set()


def notice(message: str) -> None:
    """Pass a message to all listeners."""
    for listener in listeners:
        listener(message)


def display_name(path: str) -> str:
    """Return the name of a path in messages."""
    return "standard input" if path == STANDARD else path


def is_stream(path: str) -> bool:
    """Whether a path can be read only once: standard input, or anything but a regular file or folder."""
    return path == STANDARD or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))


def is_pipe(path: str) -> bool:
    """Whether a path names a pipe, which can be read only once."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def descriptor_of(path: str) -> int | None:
    """Return the open descriptor of this process that a path names, as /dev/stdout does; None for other paths.

    Such a path is a link to the file of the descriptor, which may have other content before and after the output.
    """
    # Longer chains of links cannot be opened.
    for _ in range(40):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd", folder) and name.isdecimal():
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except (OSError, ValueError):
            break
    return None


def same_file(first: str, second: str) -> bool:
    """Whether two paths name the same file, which need not exist; False for standard input."""
    if STANDARD in (first, second):
        return False
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def _status(path: str, descriptor: int) -> os.stat_result | None:
    """Return the status of a file or pipe, for `-` of a descriptor; None if it is missing or anything else."""
    try:
        status = os.fstat(descriptor) if path == STANDARD else os.stat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode) else None


def _is_redirected(output: str, other: str, descriptor: int) -> bool:
    """Whether one of two paths is `-`, a standard stream redirected to or from the file or pipe of the other."""
    if STANDARD not in (output, other):
        return False
    first, second = _status(output, 1), _status(other, descriptor)
    return first is not None and second is not None and os.path.samestat(first, second)


def refuse_overwriting(inputs: Iterable[str | None], outputs: Iterable[str | None]) -> None:
    """Refuse outputs that overwrite an input or a model, or that are the same file.

    Args:
        inputs, outputs: files; None is skipped.

    Raises:
        PhraseToolError: an output is an input, another output or a file of a model.
    """
    sources = [path for path in inputs if path is not None]
    targets = [path for path in outputs if path is not None]
    for i, path in enumerate(targets):
        for other in sources:
            if same_file(path, other) or _is_redirected(path, other, 0):
                raise PhraseToolError(f"{path}: the output is the input {other}; choose another name")
        if folder := model_of(path):
            raise PhraseToolError(f"{path}: the output is a file of the model in {folder}; choose another name")
        for other in targets[:i]:
            if same_file(path, other) or path == other == STANDARD or _is_redirected(path, other, 1):
                raise PhraseToolError(f"{path}: two outputs go to one file")


def model_of(path: str) -> str | None:
    """Return the folder of the model, of this or another toolkit, that a file belongs to; None if there is none.

    A model folder has a `config.json`; it may also hold files that are not part of the model.
    """
    if path == STANDARD or "\0" in path or not os.path.isfile(path):
        return None
    folder, name = os.path.split(os.path.realpath(path))
    part = name.endswith(_MODEL_ENDINGS) or name in _MODEL_FILES
    return (os.path.dirname(path) or ".") if part and os.path.isfile(os.path.join(folder, "config.json")) else None


def scratch_place(path: str) -> str | None:
    """Return the folder for temporary files of an output: that of the file; None (the system's) if it is a stream."""
    special = path == STANDARD or (os.path.exists(path) and not os.path.isfile(path)) or descriptor_of(path) is not None
    return None if special else os.path.dirname(os.path.abspath(path))
