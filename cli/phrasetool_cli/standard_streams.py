"""Standard input, output and error as commands expect them, however the shell has left them."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def mend_standard_streams() -> None:
    """Make them usable: none missing, every character can be printed, and what cannot be said does no harm.

    * Where one is closed, something stands in for it, so that no file takes its place and is written to by mistake.
      To read from it or to write to it is an error (EBADF), but messages to a closed standard error go nowhere.
    * What the encoding of the terminal lacks is printed with backslashes; names that are no UTF-8 as their bytes.
    * Messages that cannot be written, to a full disk for instance, are left out: the command is not worse for it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _occupy(number)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        utf_8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if utf_8 else "backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Forgiving(2, "wb", closefd=False)),
            encoding=sys.stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _occupy(number: int) -> None:
    """Open a closed descriptor the wrong way round, so that using it is an error; but standard error takes anything."""
    try:
        os.fstat(number)
    except OSError:
        taken = os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_WRONLY)
        if taken == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(taken, number)
            os.close(taken)


class _Forgiving(io.FileIO):
    """A file to which what cannot be written counts as written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes
