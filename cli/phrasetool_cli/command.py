"""The class of all commands: options in sections, `--verbose`, and defaults from a configuration."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

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


# Packages whose version can change a figure or a byte of an output.
PACKAGES = (
    "numpy", "numba", "torch", "gensim", "scikit-learn", "eflomal", "sacrebleu", "pyarrow", "isal",
    "deflate",
)  # fmt: skip


def version_signature() -> str:
    """`phrasetool VERSION`, then `name:version` of Python, the packages and the system, with `|` between."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from phrasetool import __version__

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    found["system"] = f"{platform.system()}-{platform.machine()}"
    return "|".join([f"phrasetool {__version__}", *(f"{name}:{value}" for name, value in found.items())])


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
