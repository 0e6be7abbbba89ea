"""Paths as people give them, and as the rest of the house takes them."""

from __future__ import annotations

import os

StrPath = str | os.PathLike[str]


def text_path(path: StrPath | None) -> str | None:
    """A path as text, if there is one."""
    return None if path is None else os.fspath(path)


def text_paths(pair: tuple[StrPath, StrPath] | None) -> tuple[str, str] | None:
    """Two of them."""
    return None if pair is None else (os.fspath(pair[0]), os.fspath(pair[1]))
