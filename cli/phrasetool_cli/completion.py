"""Completion in a shell, where click by itself completes options and choices only: of file names, and of criteria."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

# Texts that are no files.
_NO_FILES = {
    "NAME", "X", "CODE", "NAMES", "LANG", "HOST:PORT", "a+e|a-e|N", "SPEC", "SOURCE,TARGET", "N...", "TYPE",
    "ARGUMENTS", "P", "TEXT", "PREFIX",
}  # fmt: skip
# Arguments that are no files, by command.
_NO_FILE_ARGUMENTS = {("neighbours", "phrase"), ("threshold-filter", "thresholds")}


def complete_files(name: str, command: click.Command) -> None:
    """Let arguments and options that name files be completed as such, and those that name criteria by their names."""
    for parameter in command.params:
        if "--method" in parameter.opts:
            parameter._custom_shell_complete = _criteria
            continue
        types = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
        is_text = all(kind in (click.STRING, click.UNPROCESSED) for kind in types)
        is_file = parameter.metavar not in _NO_FILES
        if is_text and is_file and (name, parameter.name) not in _NO_FILE_ARGUMENTS:
            parameter.type = click.Path()


def _criteria(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of criteria, of which several may stand with + between them."""
    from phrasetool.pruning.methods import NAMES

    before, plus, begun = incomplete.rpartition("+")
    return [CompletionItem(before + plus + name) for name in NAMES if name.startswith(begun)]
