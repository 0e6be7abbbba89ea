"""The console script: what must be settled before anything else is imported."""

from __future__ import annotations

import contextlib
import os
import signal
import types


def _leave(number: int, frame: types.FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"phrasetool: interrupted\n")
    os._exit(128 + number)


def spin_briefly() -> None:
    """Bound how long OpenMP's threads of GCC's library wait for each other without sleeping.

    The library's own bound, 300,000 turns, is set for an idle machine.  Where something else has one of the cores, each
    operation of PyTorch waits that long for its other thread, and training takes several times as long as on one
    thread.  It is read when the library is loaded; what the user has set stays.

    The threads of numpy's OpenBLAS begin by spinning for 2^26 cycles, which no short command needs.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")


def run() -> None:
    """Run the command line; see `main`."""
    spin_briefly()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from phrasetool_cli.main import run

    run()
