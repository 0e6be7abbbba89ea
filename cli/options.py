"""Options that several commands share."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from phrasetool.errors import PhraseToolError

_DEFAULT_MODEL = "phrasetool-model"


def default_model() -> str:
    """`$PHRASETOOL_MODEL`, or the folder `phrasetool train` writes."""
    return os.environ.get("PHRASETOOL_MODEL", _DEFAULT_MODEL)


def available_processors() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def model_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`-m MODEL`."""
    return click.option(
        "-m",
        "--model",
        "model_folder",
        metavar="FOLDER",
        help="Model folder.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]",
    )(function)


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that streams a table."""
    decorators = [
        click.option(
            "--threads",
            type=click.IntRange(1),
            default=available_processors,
            metavar="N",
            help="Worker threads.  [default: all processors]",
        ),
        click.option(
            "--block-bytes",
            type=click.IntRange(1),
            default=1 << 21,
            show_default=True,
            metavar="N",
            help="How much text a thread takes at a time.  Changes speed and memory, never the output.",
        ),
        click.option(
            "--on-error",
            type=click.Choice(["fail", "skip", "keep"]),
            default="fail",
            show_default=True,
            help="What to do about a line that is not a table entry: stop, leave it out, or pass it through.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="No progress, no summary."),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--threads` and `--quiet`, for the commands of the engine."""
    decorators = [
        click.option(
            "--threads",
            type=click.IntRange(1),
            default=available_processors,
            metavar="N",
            help="Worker threads.  [default: all processors]",
        ),
        click.option("--quiet", "-q", is_flag=True, help="No progress, no summary."),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


@contextlib.contextmanager
def without_scipy() -> Iterator[None]:
    """Keep numba from importing SciPy, a tenth of a second, in search of a BLAS that no kernel of ours uses."""
    if "scipy" in sys.modules:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["scipy"]


def check_outputs(inputs: list[str], outputs: list[str | None]) -> None:
    """Refuse to write over an input or twice to one file, before any work starts.

    Raises:
        PhraseToolError: two of the paths are one file.
    """
    from moses_compat.streams import same_file

    named = [path for path in outputs if path is not None]
    for i, path in enumerate(named):
        for other in inputs:
            if same_file(path, other):
                raise PhraseToolError(f"{path}: the output is the input {other}; choose another name")
        for other in named[:i]:
            if same_file(path, other) or path == other == "-":
                raise PhraseToolError(f"{path}: two outputs go to one file")
