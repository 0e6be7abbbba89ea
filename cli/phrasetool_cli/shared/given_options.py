"""Which options the command line has; options without an effect are refused, because the user expects one."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource


def is_given(name: str) -> bool:
    """Whether an option stands on the command line, rather than in a configuration file.

    Args:
        name: of its parameter.
    """
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_unused(reasons: Mapping[str, str]) -> None:
    """Refuse options of the current command that would have no effect.

    Args:
        reasons: parameter name -> what the option is for.

    Raises:
        click.UsageError: the command line has one of them.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in reasons and is_given(parameter.name):
            raise click.UsageError(f"{max(parameter.opts, key=len)} is for {reasons[parameter.name]}", context)


def refuse_unused_limits(cube: bool) -> None:
    """Refuse the limit of cube pruning if the search is another."""
    if not cube:
        refuse_unused({"pop_limit": "cube pruning; give --search cube, or leave it out"})
