"""Signals and standard streams: Ctrl-C and `kill` end a command with exit codes 130 and 143 at any time."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

# Number of the last signal received; 0: none.
_arrived = 0
# Seconds after which a lost signal is sent again.
_AGAIN = 0.02


def watch_signals() -> None:
    """Make SIGINT raise `KeyboardInterrupt` and SIGTERM `SystemExit`; an ignored SIGINT remains ignored.

    Only the main thread can do this; in other threads, this function has no effect.
    """
    global _arrived
    if threading.current_thread() is not threading.main_thread():
        return
    _arrived = 0
    # An exception on SIGTERM, too, so that no half-written file is left.
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
    """Raise the exception of the last signal again: code may have caught it, or raised another error."""
    if _arrived:
        _arrive(_arrived, None)


def ignore_signals() -> None:
    """Ignore signals, so that they do not interrupt the last messages of a command."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def resend_lost_signals() -> None:
    """Send a signal again if Python ignored its exception, as it does in destructors and callbacks.

    An ignored MemoryError is not reported: the next allocation that fails ends the command with a message.
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


def reopen_standard_streams() -> None:
    """Make standard streams usable: none is closed, every character can be printed, and lost messages do no harm.

    * The descriptor of a closed stream is occupied, so that no other file gets it and is written to by mistake.
      Reading from or writing to it is an error (EBADF), but messages to a closed standard error are discarded.
    * Characters that the encoding lacks are printed as backslash escapes; names that are not UTF-8 as their bytes.
    * Messages that cannot be written, for example to a full disk, are discarded, and the command continues.
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
            io.BufferedWriter(_IgnoreWriteErrors(2, "wb", closefd=False)),
            encoding=sys.stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _occupy(number: int) -> None:
    """Open a closed descriptor in the wrong direction, so that using it is an error; standard error can be written."""
    try:
        os.fstat(number)
    except OSError:
        descriptor = os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_WRONLY)
        if descriptor == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(descriptor, number)
            os.close(descriptor)


class _IgnoreWriteErrors(io.FileIO):
    """A file that ignores write errors: data that cannot be written count as written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes
