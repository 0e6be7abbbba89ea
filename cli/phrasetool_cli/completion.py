"""Shell completion of file names and criteria; click completes options and choices."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

# Metavars of texts that do not name a file.
_TEXTS = {
    "NAME", "X", "CODE", "NAMES", "LANG", "HOST:PORT", "a+e|a-e|N", "SPEC", "SOURCE,TARGET", "N...", "TYPE",
    "ARGUMENTS", "P", "TEXT", "PREFIX",
}  # fmt: skip
# Arguments that do not name a file, by command.
_TEXT_ARGUMENTS = {("neighbours", "phrase"), ("threshold-filter", "thresholds")}


def complete_files(name: str, command: click.Command) -> None:
    """Complete the arguments and options of a command that name files.

    Args:
        name: of the command.
        command: its parameters get another type.
    """
    for parameter in command.params:
        types = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
        is_text = all(kind in (click.STRING, click.UNPROCESSED) for kind in types)
        if is_text and parameter.metavar not in _TEXTS and (name, parameter.name) not in _TEXT_ARGUMENTS:
            parameter.type = click.Path()


def complete_criteria(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last of several names of criteria with + between them."""
    from phrasetool.pruning.methods import NAMES

    before, plus, begun = incomplete.rpartition("+")
    return [CompletionItem(before + plus + name) for name in NAMES if name.startswith(begun)]
