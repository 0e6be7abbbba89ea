"""`--verbose`: what a command was asked for, what runs it, and how long each of its steps takes."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from click.core import ParameterSource

_VERBOSE = "phrasetool.verbose"
# What a command that was given `--config`, or found a configuration, tells with --verbose.
CONFIGURATION = "phrasetool.configuration"
_SOURCES = {
    ParameterSource.DEFAULT: "default",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "configuration",
}


def is_verbose() -> bool:
    """Whether the command that runs was given `--verbose`."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE, False)


def tell_step(label: str, seconds: float) -> None:
    """Say how long a step took, if that is wanted."""
    if is_verbose():
        _tell(f"{label}: {seconds:.2f} s")


def tell_settings(context: click.Context) -> None:
    """Say what a command was asked for and what runs it; its time is said when its context closes."""
    from phrasetool_cli.version import version_signature

    if context.meta.get(CONFIGURATION):
        _tell(f"configuration: {context.meta[CONFIGURATION]}")
    _tell(f"version: {version_signature()}")
    for parameter in context.command.get_params(context):
        name = str(parameter.name)
        if name not in context.params or context.params[name] is None:
            continue
        source = _SOURCES.get(context.get_parameter_source(name) or ParameterSource.DEFAULT)
        _tell(f"{_spelling(parameter)}: {_shown(context.params[name])}{f'  ({source})' if source else ''}")
    start = time.monotonic()
    context.call_on_close(lambda: _tell(f"{context.info_name}: {time.monotonic() - start:.2f} s in all"))


def _spelling(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name
    return max(parameter.opts, key=len)


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "text", value))


def _tell(message: str) -> None:
    print(f"phrasetool: {message}", file=sys.stderr, flush=True)


def _check(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    # --quiet stands before this option in every command.
    if wanted and context.params.get("quiet"):
        raise click.UsageError("give --quiet or --verbose, not both")
    if wanted:
        context.meta[_VERBOSE] = True


verbose_option = click.option(
    "--verbose", "-v", is_flag=True, expose_value=False, callback=_check,
    help="Say all settings, versions and the seconds of each step, on standard error.",
)  # fmt: skip
