"""What a command refuses to read, before any work starts."""

from __future__ import annotations

import os
from collections.abc import Iterable


def check_inputs(paths: Iterable[str | None]) -> None:
    """Refuse files that are not there or cannot be opened; pipes are left alone, what is None was not given.

    Raises:
        DataError: which, and why.
    """
    from moses_compat.files.names import STANDARD
    from moses_compat.files.streams import Input

    for path in paths:
        if path is not None and path != STANDARD and not _is_special(path):
            Input(path).close()


def _is_special(path: str) -> bool:
    """Whether a path is there and neither a file nor a folder: what is taken out of it is gone."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
