"""Whether a file could be read or written, asked before the work begins."""

from __future__ import annotations

import os
import shutil

from moses_compat.files.names import is_pipe, is_stream
from moses_compat.files.streams import Input, Output
from phrasetool.errors import PhraseToolError


def check_readable(path: str) -> None:
    """Refuse what `Input` would; of a pipe nothing is taken.

    Raises:
        DataError: the file cannot be opened.
    """
    if not is_pipe(path):
        Input(path).close()


def check_writable(path: str) -> None:
    """Refuse a name under which nothing could be written; nothing is left there, and pipes and devices are let pass.

    Raises:
        PhraseToolError: there is no such folder, it cannot be written to, or its disk is full.
    """
    if is_stream(path):
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise PhraseToolError(f"{path}: cannot write: there is no folder {os.path.dirname(path)}")
    Output(path).discard()
    if shutil.disk_usage(folder).free == 0:
        raise PhraseToolError(f"{path}: cannot write: the disk is full")
