"""Ctrl-C and a polite kill: they end the command with 130 and 143 wherever they arrive."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

# What arrived last; 0: nothing.
_arrived = 0
# After an interrupt that nobody noticed, it is sent once more, this many seconds later.
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
    """End the command as the signal should have; what it interrupted may have kept it, or said so in other words."""
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
