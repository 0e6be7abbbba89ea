"""Signals and standard streams: Ctrl-C and `kill` end a command with 130 and 143 wherever they arrive."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

# The signal that arrived last; 0: none.
_arrived = 0
# An interrupt that had no effect is sent once more, after this many seconds.
_AGAIN = 0.02


def watch_signals() -> None:
    """Let SIGINT raise `KeyboardInterrupt` and SIGTERM `SystemExit`; a SIGINT that is ignored stays so.

    Only the main thread can do this; in another, nothing happens.
    """
    global _arrived
    if threading.current_thread() is not threading.main_thread():
        return
    _arrived = 0
    # A polite kill leaves no half-written file either.
    signal.signal(signal.SIGTERM, _arrive)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _arrive)


def _arrive(number: int, frame: FrameType | None) -> None:
    global _arrived
    _arrived = number
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def raise_if_one_arrived() -> None:
    """End the command as the signal should have: code may have caught it, or raised another error."""
    if _arrived:
        _arrive(_arrived, None)


def no_more_signals() -> None:
    """Let nothing interrupt the last words of a command."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def send_lost_signals_again() -> None:
    """Where Python ignores an exception (in destructors and callbacks), a signal would be lost with it.

    That there was no memory is not said there: whatever else needs some ends the command with a line.
    """
    sys.unraisablehook = _unraisable


def _unraisable(lost: Any) -> None:
    if issubclass(lost.exc_type, MemoryError):
        return
    if _arrived and issubclass(lost.exc_type, KeyboardInterrupt | SystemExit):
        again = threading.Timer(_AGAIN, os.kill, (os.getpid(), _arrived))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


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
