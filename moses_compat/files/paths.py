"""Paths of files: standard streams, pipes, the same file twice; and notices about files while they are read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

# Each is called with a message, such as `train.de: a byte order mark at its start was left out`.
listeners: list[Callable[[str], None]] = []

# Device and inode of each pipe that was read under its name, where somebody wants it to be read but once.  A second
# reader gets what the first left, or nothing.
read_pipes: set[tuple[int, int]] | None = None

# Files that were being written when the reader of a pipe went away, and that were dropped for that.
abandoned: list[str] = []

STANDARD = "-"
# What model folders are made of.
_MODEL_FILES = ("config.json", "training.jsonl", "tokenizer.json", "tokenizer_config.json", "modules.json", "vocab.txt")
_MODEL_ENDINGS = (".safetensors", ".vocab")


def read_pipes_once() -> None:
    """From now on, each pipe can be read once."""
    global read_pipes
    read_pipes = set()


def notice(message: str) -> None:
    """Tell whoever listens."""
    for listener in listeners:
        listener(message)


def display_name(path: str) -> str:
    """How a path is called in messages."""
    return "standard input" if path == STANDARD else path


def is_stream(path: str) -> bool:
    """Whether this can be read only once: standard input, or what is there and is neither a file nor a folder."""
    return path == STANDARD or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))


def is_pipe(path: str) -> bool:
    """Whether a path names a pipe, which can be read once."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def same_file(first: str, second: str) -> bool:
    """Whether two paths name one existing file."""
    if STANDARD in (first, second):
        return False
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def model_of(path: str) -> str | None:
    """The folder of the model, of this toolkit or from elsewhere, that a file belongs to; None if it is of none.

    A model folder has a `config.json`; other files may lie there, too, which are no part of the model.
    """
    if path == STANDARD or "\0" in path or not os.path.isfile(path):
        return None
    folder, name = os.path.split(os.path.realpath(path))
    part = name.endswith(_MODEL_ENDINGS) or name in _MODEL_FILES
    return (os.path.dirname(path) or ".") if part and os.path.isfile(os.path.join(folder, "config.json")) else None


def scratch_place(beside: str) -> str | None:
    """The folder for what is needed for a while: that of the file `beside`, None for the system's if it is none."""
    special = beside == STANDARD or (os.path.exists(beside) and not os.path.isfile(beside))
    return None if special else os.path.dirname(os.path.abspath(beside))
