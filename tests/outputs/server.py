"""Run commands of one checkout, each in a process forked from this one, in which slow packages are loaded.

The interpreter of the checkout starts this script with the names of the packages.  It reads requests from standard
input, one line of JSON each, and answers each with a line containing the exit code.  No module of the checkout is
loaded here, so that each child imports its modules like a user's process.  A request with `warm` is an exception: its
command runs in this process, and later commands find the modules loaded.  A command on a small table takes 0.4 s on
its own, 0.1 s as a child, and 0.03 s as a child of a warm process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn


def preload(packages: list[str]) -> None:
    """Load packages and let numba set up its compiler; missing packages are ignored here."""
    for name in packages:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        import numba
        import numpy as np

        numba.njit(nogil=True, error_model="numpy")(lambda values, x: values[0] + x)(np.zeros(3), 2)


def warm_up(request: dict[str, Any]) -> None:
    """Run a command in this process and discard its output."""

    def leave(code: int) -> NoReturn:
        raise SystemExit(code)

    saved, leave_at_once = [os.dup(number) for number in (1, 2)], os._exit
    null = os.open(os.devnull, os.O_WRONLY)
    os._exit = leave
    try:
        os.chdir(request["folder"])
        for number in (1, 2):
            os.dup2(null, number)
        sys.argv = [request["script"], *request["arguments"]]
        runpy.run_path(request["script"], run_name="__main__")
    except BaseException:
        # Errors of the command appear in its cases.
        pass
    finally:
        os._exit = leave_at_once
        for number, descriptor in zip((1, 2), saved, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(null)


def become(request: dict[str, Any]) -> None:
    """Run the script in this process and exit; never returns."""
    code = 1
    try:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        write_flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, (name, flags) in enumerate(
            (("stdin", os.O_RDONLY), ("stdout", write_flags), ("stderr", write_flags))
        ):
            os.dup2(os.open(request[name], flags, 0o644), number)
        if request["fresh"]:
            os.execv(sys.executable, [sys.executable, request["script"], *request["arguments"]])
        # The old stream has already buffered the next requests.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.argv = [request["script"], *request["arguments"]]
        sys.path[0] = os.path.dirname(request["script"])
        runpy.run_path(request["script"], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def attend(child: int, request: dict[str, Any]) -> int:
    """Wait for a child and return its exit code, negative for a signal.

    The child is interrupted when its standard error contains the text of `stop`, and killed after `kill` seconds, or
    after `limit` seconds if `kill` is None.
    """
    limit = request["limit"] if request["kill"] is None else request["kill"]
    stop, ends_at = request["stop"].encode(), time.monotonic() + limit
    while True:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        if stop and stop in Path(request["stderr"]).read_bytes():
            os.kill(child, signal.SIGINT)
            stop = b""
        if time.monotonic() > ends_at:
            os.kill(child, signal.SIGKILL)
        time.sleep(min(0.001, max(0.0, ends_at - time.monotonic())))


def main() -> None:
    # Packages must not import modules of this folder.
    sys.path[0] = os.path.dirname(sys.executable)
    preload(sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        if request["warm"]:
            warm_up(request)
            print(0, flush=True)
            continue
        for name in ("stdout", "stderr"):
            Path(request[name]).write_bytes(b"")
        # The garbage collector of a child then does not modify shared memory pages, which would copy them.
        gc.freeze()
        child = os.fork()
        if not child:
            become(request)
        print(attend(child, request), flush=True)


if __name__ == "__main__":
    main()
