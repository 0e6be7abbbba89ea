"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
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


def _all_of(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    """One decorator that adds these options, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def threads_option(help_text: str) -> Callable[..., Any]:
    """`--threads`, by default all processors."""
    return click.option(
        "--threads",
        type=click.IntRange(1),
        default=available_processors,
        metavar="N",
        help=f"{help_text}  [default: all processors]",
    )


quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress, no summary.")

# Options of every command that streams a table.
table_options = _all_of(
    threads_option("Worker threads."),
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
    quiet_option,
)

# The options that name a model, for every command that decodes.
decoder_model_options = _all_of(
    click.option("--moses-ini", "ini", required=True, metavar="FILE", help="The model: a moses.ini (version 2)."),
    click.option("--table", metavar="FILE", help="Use this phrase table instead of the one the ini names."),
    click.option("--reordering-table", metavar="FILE", help="Use this reordering table instead of the ini's."),
)

# Options of the search; what is not given is as in the ini, else as in Moses.
search_options = _all_of(
    click.option("--search", type=click.Choice(["stack", "cube"]),
                 help="Every extension of every hypothesis, or cube pruning: the most promising ones only.  "
                      "[default: ini, else stack]"),
    click.option("--stack", "stack_size", type=click.IntRange(1), metavar="N",
                 help="Hypotheses a stack keeps.  [default: ini, else 200]"),
    click.option("--pop-limit", type=click.IntRange(1), metavar="N",
                 help="Hypotheses cube pruning makes for a stack.  [default: ini, else 1000]"),
    click.option("--beam-threshold", type=click.FloatRange(0, 1), metavar="P",
                 help="Drop hypotheses less probable than this share of their stack's best.  "
                      "[default: ini, else 1e-5]"),
    click.option("--distortion-limit", type=int, metavar="N",
                 help="Words a jump may span; -1: any.  [default: ini]"),
    click.option("--table-limit", type=click.IntRange(0), metavar="N",
                 help="Options per source phrase; 0: all.  [default: ini, else 20]"),
)  # fmt: skip

engine_options = _all_of(threads_option("Worker threads."), quiet_option)


def chosen_search(model: Any, **given: Any) -> Any:
    """The search options of a `MosesModel` with those of `search_options` that were given."""
    given["algorithm"] = given.pop("search")
    return replace(model.search, **{name: value for name, value in given.items() if value is not None})


def check_outputs(inputs: list[str], outputs: list[str | None]) -> None:
    """Refuse to write over an input or twice to one file, before any work starts.

    Raises:
        PhraseToolError: two of the paths are one file.
    """
    from moses_compat.files.streams import same_file

    named = [path for path in outputs if path is not None]
    for i, path in enumerate(named):
        for other in inputs:
            if same_file(path, other):
                raise PhraseToolError(f"{path}: the output is the input {other}; choose another name")
        for other in named[:i]:
            if same_file(path, other) or path == other == "-":
                raise PhraseToolError(f"{path}: two outputs go to one file")
