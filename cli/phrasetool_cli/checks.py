"""Checks of the arguments of a command, before any work starts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

import click
from click.core import ParameterSource

from phrasetool.errors import PhraseToolError


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


def _status(path: str, descriptor: int) -> os.stat_result | None:
    """Return the status of a file or pipe, for `-` of a descriptor; None if it is missing or anything else."""
    try:
        status = os.fstat(descriptor) if path == "-" else os.stat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode) else None


def _is_redirected(output: str, other: str, descriptor: int) -> bool:
    """Whether one of two paths is `-`, a standard stream redirected to or from the file or pipe of the other."""
    if "-" not in (output, other):
        return False
    first, second = _status(output, 1), _status(other, descriptor)
    return first is not None and second is not None and os.path.samestat(first, second)


def check_outputs(inputs: Iterable[str | None], outputs: Iterable[str | None], *, folders: bool = False) -> None:
    """Refuse outputs that overwrite an input or a model, that are the same file, or that cannot be written.

    Args:
        inputs, outputs: files; None is skipped.
        folders: whether outputs may be folders, too; then only their names are checked.

    Raises:
        click.UsageError: two inputs are standard input.
        PhraseToolError: an output is an input, another output or a file of a model, or cannot be written.
    """
    from moses_compat.files.paths import model_of, same_file
    from moses_compat.files.streams import check_writable

    sources = [path for path in inputs if path is not None]
    targets = [path for path in outputs if path is not None]
    refuse_two_standard_inputs(sources)
    for i, path in enumerate(targets):
        for other in sources:
            if same_file(path, other) or _is_redirected(path, other, 0):
                raise PhraseToolError(f"{path}: the output is the input {other}; choose another name")
        if folder := model_of(path):
            raise PhraseToolError(f"{path}: the output is a file of the model in {folder}; choose another name")
        for other in targets[:i]:
            if same_file(path, other) or path == other == "-" or _is_redirected(path, other, 1):
                raise PhraseToolError(f"{path}: two outputs go to one file")
    for path in targets if not folders else ():
        check_writable(path)
