"""Options in sections, as `--help` of a command with many options lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from phrasetool_cli.shared.verbosity import is_verbose, tell_settings

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Where click's decorators leave the parameters of a function, last one first; and where `sections` leaves a title.
_PARAMETERS = "__click_params__"
_TITLE = "phrasetool_section"


def sections(*parts: str | Callable[[Any], Any] | None) -> Callable[[_Function], _Function]:
    """One decorator that adds options, in this order.

    Args:
        parts: decorators that add options.  A text before them is the title of their section, also of those that have
            one already; after None, options keep the titles they have.
    """
    titled: list[tuple[str | None, Callable[[Any], Any]]] = []
    title: str | None = None
    for part in parts:
        if part is None or isinstance(part, str):
            title = part
        else:
            titled.append((title, part))

    def decorate(function: _Function) -> _Function:
        for title, add in reversed(titled):
            before = len(getattr(function, _PARAMETERS, ()))
            function = add(function)
            for parameter in getattr(function, _PARAMETERS)[before:]:
                if title is not None:
                    give_title(parameter, title)
        return function

    return decorate


def give_title(parameter: click.Parameter, title: str) -> None:
    """Put a parameter into the section of this title."""
    setattr(parameter, _TITLE, title)


class SectionedCommand(click.Command):
    """A command that lists its options under the titles that `sections` gave them, the others last."""

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Title -> option and help, in order."""
        found: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                title = getattr(parameter, _TITLE, None)
                (found.setdefault(title, []) if title else others).append(record)
        return {**found, "Other options" if found else "Options": others}

    def invoke(self, context: click.Context) -> Any:
        """Run with what was typed and what is configured; with --verbose, after a word about that."""
        if context.default_map:
            from phrasetool_cli.config_file import command_line_wins

            command_line_wins(context)
        if is_verbose():
            tell_settings(context)
        return super().invoke(context)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, rows in self.sections(context).items():
            with formatter.section(title):
                formatter.write_dl(rows)
