"""The console script.  It knows what to do about Ctrl-C before anything else is imported."""

from __future__ import annotations

import contextlib
import os
import signal
import types


def _leave(number: int, frame: types.FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"phrasetool: interrupted\n")
    os._exit(128 + number)


def run() -> None:
    """Run the command line; see `main`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from phrasetool_cli.main import run

    run()
