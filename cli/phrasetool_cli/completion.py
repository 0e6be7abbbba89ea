"""Completion of file names in a shell, where click by itself completes options and choices only."""

from __future__ import annotations

import click


def complete_files(command: click.Command) -> None:
    """Let every argument and option that takes any text be completed as the name of a file."""
    for parameter in command.params:
        types = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
        if all(kind in (click.STRING, click.UNPROCESSED) for kind in types):
            parameter.type = click.Path()
