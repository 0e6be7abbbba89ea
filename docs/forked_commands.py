"""Run many short commands, each in a fork of one process that has already imported the required modules.

A `phrasetool` command that ends with an error spends a second on imports and a hundredth of that on its own work; a
fork saves the imports.  The fork runs the console script as the shell would: in a folder, with an environment, and with
files for its streams.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

# Characters that only a shell interprets.
_SHELL = re.compile(r"[|<>&;$`*?~]")
_PACKAGES = ("phrasetool", "moses_compat", "phrasetool_cli")
# Libraries that commands import when they need them.
_OTHERS = ("gensim.models", "pandas", "pyarrow.parquet")
_SECONDS = 120


def import_all() -> None:
    """Import the modules that commands need, for all forks of this process."""
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            # `__main__` runs the command line when it is imported.
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    for name in _OTHERS:
        importlib.import_module(name)


def everywhere(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Return the results of a function for tasks, computed in forks of this process, one per processor."""
    import_all()
    # Memory that the garbage collector of a fork never touches remains shared.
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.map(function, tasks, chunksize=1)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return exit code and standard error of a shell line; a plain `phrasetool` command runs in a fork."""
    words = [] if _SHELL.search(command) else shlex.split(command)
    if words[:1] != ["phrasetool"]:
        completed = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return completed.returncode, completed.stderr
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        if (child := os.fork()) == 0:
            try:
                _become(words, folder, environment, output.fileno(), errors.fileno())
            finally:
                # Not reached: the console script exits.
                os._exit(70)
        code = _ended(child)
        errors.seek(0)
        return code, errors.read().decode("utf-8", "backslashreplace")


def _become(words: list[str], folder: Path, environment: Mapping[str, str], output: int, errors: int) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((null, 0), (output, 1), (errors, 2)):
        os.dup2(descriptor, target)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = words
    try:
        importlib.import_module("phrasetool_cli.console").run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def _ended(child: int) -> int:
    """Wait for a process, and return its exit code as a shell reports it."""
    end = time.monotonic() + _SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"still running after {_SECONDS} seconds")
        time.sleep(0.01)
