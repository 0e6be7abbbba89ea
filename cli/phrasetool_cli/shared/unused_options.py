"""Options that nothing would come of are refused: who gives one expects an effect."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource


def refuse_unused(reasons: Mapping[str, str]) -> None:
    """Refuse options of the command that runs, where the command line has them; a configuration file may.

    Args:
        reasons: name of a parameter -> what the option is for.

    Raises:
        click.UsageError: the first of them that was given.
    """
    context = click.get_current_context()
    spellings = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    for name, reason in reasons.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{spellings[name]} is for {reason}", context)


def refuse_unused_limits(cube: bool) -> None:
    """Refuse a limit of cube pruning where the search is another."""
    if not cube:
        refuse_unused({"pop_limit": "cube pruning; give --search cube, or leave it out"})
