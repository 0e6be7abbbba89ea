"""The console script: settings that must precede all other imports."""

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
    """Limit how long the threads of GCC's OpenMP library wait for each other without sleeping.

    The library's default, 300,000 iterations, suits an idle machine.  If another process occupies one of the cores,
    each operation of PyTorch waits that long for its other thread, and training takes several times as long as with one
    thread.  The limit is read when the library is loaded; limits set by the user are kept.

    The threads of numpy's OpenBLAS spin for 2^26 cycles at first, which no short command needs.
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
