"""Checks of the arguments of a command, before any work starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click
from click.core import ParameterSource


def check_inputs(paths: Iterable[str | None]) -> None:
    """Refuse missing files and files that cannot be opened; pipes are not opened, and None is skipped.

    Raises:
        click.UsageError: two inputs are standard input.
        DataError: a file is missing or cannot be opened.
    """
    from moses_compat.files.streams import check_readable

    paths = list(paths)
    refuse_two_standard_inputs(paths)
    for path in paths:
        if path is not None:
            check_readable(path)


def refuse_two_standard_inputs(paths: Iterable[str | None]) -> None:
    """Refuse standard input for two inputs: the second one would be empty.

    Args:
        paths: inputs of a command; None is skipped.

    Raises:
        click.UsageError: two of them are standard input.
    """
    from moses_compat.files.paths import descriptor_of

    if sum(path is not None and (path == "-" or descriptor_of(path) == 0) for path in paths) > 1:
        raise click.UsageError("only one input can be standard input", click.get_current_context(silent=True))


def is_given(name: str) -> bool:
    """Whether an option was typed on the command line, rather than set in a configuration file.

    Args:
        name: name of its parameter.
    """
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_unused(reasons: Mapping[str, str]) -> None:
    """Refuse options of the current command that would have no effect.

    Args:
        reasons: parameter name -> what the option is for.

    Raises:
        click.UsageError: one of these options is on the command line.
    """
    context = click.get_current_context()
    for parameter in context.command.get_params(context):
        if parameter.name in reasons and is_given(parameter.name):
            raise click.UsageError(f"{max(parameter.opts, key=len)} is for {reasons[parameter.name]}", context)


def refuse_unused_limits(cube: bool) -> None:
    """Refuse `--pop-limit` unless the search is cube pruning."""
    if not cube:
        refuse_unused({"pop_limit": "cube pruning; give --search cube, or leave it out"})


def check_outputs(inputs: Iterable[str | None], outputs: Iterable[str | None], *, folders: bool = False) -> None:
    """Refuse outputs that overwrite an input or a model, that are the same file, or that cannot be written.

    Args:
        inputs, outputs: files; None is skipped.
        folders: whether outputs may be folders, too; then only their names are checked.

    Raises:
        click.UsageError: two inputs are standard input.
        PhraseToolError: an output is an input, another output or a file of a model, or cannot be written.
    """
    from moses_compat.files.paths import refuse_overwriting
    from moses_compat.files.streams import check_writable

    sources, targets = list(inputs), list(outputs)
    refuse_two_standard_inputs(sources)
    refuse_overwriting(sources, targets)
    for path in targets if not folders else ():
        if path is not None:
            check_writable(path)
