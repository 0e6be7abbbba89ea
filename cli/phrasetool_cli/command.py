"""Base classes of commands: options in sections, renamed options, `--verbose`; and groups that import lazily."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import re
import resource
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from phrasetool.errors import PhraseToolError
from phrasetool.text_splitting import split_lines
from phrasetool_cli.messages import hint

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_VERBOSE = "phrasetool.verbose"
# Key of the arguments of the command, as typed, which --verbose reports.
_ARGUMENTS = "phrasetool.arguments"
# Key of the configuration file in the context, which --verbose reports.
CONFIGURATION = "phrasetool.configuration"
# Bytes of address space.  Python, numpy and numba take 126 MB with one thread, and some MB more for each core.
_LEAST_MEMORY = 512 << 20
_SOURCES = {
    ParameterSource.DEFAULT: "default",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "configuration",
}


def is_verbose() -> bool:
    """Whether the running command was given `--verbose`."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE, False)


def report_step(label: str, seconds: float) -> None:
    """Report the duration of a step with --verbose."""
    if is_verbose():
        _tell(f"{label}: {seconds:.2f} s")


def report_settings(context: click.Context) -> None:
    """Report options and versions of a command, and its duration when its context closes."""
    if context.meta.get(CONFIGURATION):
        _tell(f"configuration: {context.meta[CONFIGURATION]}")
    _tell(f"version: {version_signature()}")
    typed = context.command.make_parser(context).parse_args(list(context.meta.get(_ARGUMENTS, ())))[0]
    for parameter in context.command.get_params(context):
        name = str(parameter.name)
        if name not in context.params or context.params[name] is None:
            continue
        source = context.get_parameter_source(name) or ParameterSource.DEFAULT
        if source is ParameterSource.COMMANDLINE:
            text = typed.get(name)
        elif source is ParameterSource.DEFAULT_MAP:
            text = context.lookup_default(name)
        else:
            text = parameter.get_default(context)
        # Flags, and options whose value was left out, have no text.
        value = text if _is_text(text) else context.params[name]
        label = _SOURCES.get(source)
        _tell(f"{_spelling(parameter)}: {_shown(value)}{f'  ({label})' if label else ''}")
    start = time.monotonic()
    context.call_on_close(lambda: _tell(f"{context.info_name}: {time.monotonic() - start:.2f} s in all"))


def _spelling(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name
    return max(parameter.opts, key=len)


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple | list) and bool(value) and all(map(_is_text, value)))


def _tell(message: str) -> None:
    from phrasetool_cli.messages import write

    write(message)


def _remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[_VERBOSE] = value


def _choose_verbosity(context: click.Context) -> None:
    """Choose between `--quiet` and `--verbose`: the command line has precedence over the configuration file.

    Raises:
        click.UsageError: both are typed, or both are configured.
    """
    if not (context.params.get("quiet") and is_verbose()):
        return
    quiet, verbose = (
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ("quiet", "verbose")
    )
    if quiet == verbose:
        raise click.UsageError("give --quiet or --verbose, not both", context)
    context.params["quiet"], context.meta[_VERBOSE] = quiet, verbose


verbose_option = click.option(
    "--verbose", "-v", is_flag=True, expose_value=False, callback=_remember,
    help="Print settings, versions and the seconds of each step.",
)  # fmt: skip


# Packages whose versions can affect results or output files.
PACKAGES = (
    "numpy", "numba", "torch", "gensim", "scikit-learn", "eflomal", "sacrebleu", "pyarrow", "isal",
    "deflate",
)  # fmt: skip


def version_signature() -> str:
    """Return `phrasetool VERSION` and `name:version` of Python, the packages and the system, separated by `|`."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from phrasetool import __version__

    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    versions["system"] = f"{platform.system()}-{platform.machine()}"
    return "|".join([f"phrasetool {__version__}", *(f"{name}:{value}" for name, value in versions.items())])


_Function = TypeVar("_Function", bound=Callable[..., Any])

# Attributes in which click's decorators store the parameters of a function, last one first, and `sections` a title.
_PARAMETERS = "__click_params__"
_TITLE = "phrasetool_section"
# Section of the options without a title.
_GENERAL = "General"
# The range of valid numbers, which click appends to help texts, alone or after the default.
_RANGE = r"(?:[-\d.e]+<=?)?x(?:[<>]=?[-\d.e]+)?\]"
_RANGES = re.compile(rf"  \[{_RANGE}|; {_RANGE}")
_TYPE_NAMES = {" INTEGER RANGE": " N", " FLOAT RANGE": " X", " INTEGER": " N", " FLOAT": " X", " SHARE": " SHARE"}
# Largest integer that an option accepts: kernels compute in 64 bits, and random generators are seeded with 32.
LARGEST_NUMBER = 2**32 - 1
# Environment variable with which the shell requests completions from click.
COMPLETION = "_PHRASETOOL_COMPLETE"
# Metavars of string options that are not file names.
_TEXTS = {
    "NAME", "X", "CODE", "NAMES", "LANG", "HOST:PORT", "a+e|a-e|N", "SPEC", "SOURCE,TARGET", "N...", "TYPE",
    "ARGUMENTS", "P", "TEXT",
}  # fmt: skip
# Command and parameter name of arguments that are not file names.
_TEXT_ARGUMENTS = {("neighbours", "phrase"), ("show", "phrase"), ("threshold-filter", "thresholds")}


def sections(*parts: str | Callable[[Any], Any] | None) -> Callable[[_Function], _Function]:
    """Return a decorator that adds options in this order.

    Args:
        parts: decorators that add options.  A string is the section title of the options that follow, and replaces
            titles that they have already; after None, options keep their titles.
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


def current_names(arguments: Sequence[str], renamed: Mapping[str, str], silent: bool = False) -> list[str]:
    """Return arguments with the current names of options.

    Old names of options work for one more release, with a hint on standard error.

    Args:
        arguments: arguments of a command, as typed.
        renamed: old name of an option -> current name.
        silent: whether to give no hint.
    """
    if not renamed:
        return list(arguments)
    names = list(arguments)
    end = names.index("--") if "--" in names else len(names)
    quiet = silent or not {"-q", "--quiet"}.isdisjoint(names[:end])
    hinted = set()
    for i, argument in enumerate(names[:end]):
        old, equals, value = argument.partition("=")
        if (new := renamed.get(old)) is None:
            continue
        names[i] = f"{new}{equals}{value}"
        if old not in hinted and not quiet:
            hinted.add(old)
            hint(f"{old} is now called {new}; the old name works for one more release")
    return names


def value_of(arguments: Sequence[str], option: str) -> str | None:
    """Return the last value of an option in arguments as typed; None if the option is missing."""
    value = None
    for index, argument in enumerate(arguments):
        if argument == option:
            value = "".join(arguments[index + 1 : index + 2])
        elif argument.startswith(f"{option}="):
            value = argument.partition("=")[2]
    return value


# A word of a shell command; quoted parts may contain spaces.
_WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\S)+")


def fitted_examples(text: str, width: int) -> str:
    """Break commands in examples that are wider than the terminal, so that a shell accepts them.

    Args:
        text: lines, with commands indented.
        width: maximum width of a line.
    """
    lines = []
    for line in split_lines(text):
        if len(line) <= width or not line.lstrip(" ").startswith("phrasetool "):
            lines.append(line)
            continue
        current = line[: len(line) - len(line.lstrip(" "))]
        indent = f"{current}    "
        for i, word in enumerate(_WORD.findall(line)):
            if len(current) + len(word) + 3 > width:
                lines.append(f"{current} \\")
                current = indent + word
            else:
                current = f"{current}{' ' if i and current != indent else ''}{word}"
        lines.append(current)
    return "\n".join(lines)


def _format_examples(command: click.Command, formatter: click.HelpFormatter) -> None:
    if command.epilog:
        formatter.write_paragraph()
        with formatter.indentation():
            text = inspect.cleandoc(command.epilog)
            formatter.write_text(fitted_examples(text, formatter.width - formatter.current_indent))


def together(first: str, second: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the pairs of `SectionedCommand.dependent` for two parameters that require each other."""
    return (first, second), (second, first)


class SectionedCommand(click.Command):
    """A command that lists its options under the titles from `sections`, and options without a title last.

    Args:
        renamed: old name of an option -> current name.
        exclusive: groups of parameters of which the command accepts only one.
        dependent: pairs of a parameter and another one that it requires.
    """

    def __init__(
        self, *arguments: Any, renamed: Mapping[str, str] | None = None, exclusive: Sequence[Sequence[str]] = (),
        dependent: Sequence[tuple[str, str]] = (), **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__(*arguments, **settings)
        self.renamed, self.exclusive, self.dependent = dict(renamed or {}), exclusive, dependent

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return title -> names and help of options, in order."""
        titled: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                title = getattr(parameter, _TITLE, None)
                (titled.setdefault(title, []) if title else others).append(_short_record(*record))
        others = [*titled.pop(_GENERAL, []), *others]
        return {**titled, _GENERAL if titled else "Options": others}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, which may contain old names of options."""
        names = current_names(args, self.renamed, ctx.resilient_parsing)
        ctx.meta[_ARGUMENTS] = list(names)
        rest = super().parse_args(ctx, names)
        for parameter in self.get_params(ctx):
            _check_size(parameter, ctx.params.get(str(parameter.name)), ctx)
            _check_name(parameter, ctx.params.get(str(parameter.name)), ctx)
        return rest

    def invoke(self, context: click.Context) -> Any:
        """Run with the typed and configured options; with --verbose, report them first."""
        if context.default_map:
            from phrasetool_cli.config_file import command_line_wins

            command_line_wins(context, self.exclusive, self.dependent)
        _choose_verbosity(context)
        _check_memory_limit()
        if is_verbose():
            report_settings(context)
        return super().invoke(context)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _format_examples(self, formatter)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, rows in self.sections(context).items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_fewest_lines(rows, formatter.width))


def _check_memory_limit() -> None:
    """Refuse a memory limit below the needs of the packages that are imported next.

    Python does not always survive a lack of memory during an import: of 276 runs with limits of 92 to 127 MB, two
    hung on Python's own import lock, and in five the MemoryError was lost.

    Raises:
        PhraseToolError: the limit on the address space is too small.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise PhraseToolError(
            f"the limit on memory (ulimit -v) is {limit >> 20} MB, and at least {_LEAST_MEMORY >> 20} MB are needed"
        )


def _check_size(parameter: click.Parameter, value: Any, context: click.Context) -> None:
    """Refuse a whole number that overflows the integers of kernels and libraries.

    Raises:
        click.BadParameter: a number of the value is too large, or too far below 0.
    """
    kinds = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
    # Sizes in bytes have another type.
    if not any(isinstance(kind, click.types.IntParamType) for kind in kinds):
        return
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, int) and abs(number) > LARGEST_NUMBER:
            bound = f"x<={LARGEST_NUMBER}" if number > 0 else f"x>=-{LARGEST_NUMBER}"
            raise click.BadParameter(f"{number} is not in the range {bound}.", context, parameter)


def _check_name(parameter: click.Parameter, value: Any, context: click.Context) -> None:
    """Refuse an empty name, as of an unset variable of the shell: it would mean the current folder, or the default.

    Raises:
        click.BadParameter: the parameter names files or folders, and one of the names is empty.
    """
    if not _names_files(str(context.info_name), parameter):
        return
    # A language in `LANG FILE` is not a name.
    parts = itertools.cycle((parameter.metavar or "").split(" "))
    if any(text == "" and part != "LANG" for part, text in zip(parts, _flat(value), strict=False)):
        kind = "folder" if parameter.metavar == "FOLDER" else "file"
        raise click.BadParameter(f"expected the name of a {kind}, found ''", context, parameter)


def _flat(value: Any) -> Iterator[Any]:
    """Yield the values of a parameter, which may be repeatable and have several parts."""
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _names_files(command: str, parameter: click.Parameter) -> bool:
    """Whether the values of a parameter are names of files or folders."""
    kinds = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
    is_text = all(kind in (click.STRING, click.UNPROCESSED) or isinstance(kind, click.Path) for kind in kinds)
    return is_text and parameter.metavar not in _TEXTS and (command, parameter.name) not in _TEXT_ARGUMENTS


def _fewest_lines(rows: Sequence[tuple[str, str]], width: int) -> int:
    """Return the width of the name column with which options take the fewest lines; longer names get a line each."""

    def lines(column: int) -> int:
        # As in click's formatter: two spaces before names and two after them; texts end two columns before the width.
        return sum(
            (len(names) > column) + max(1, len(textwrap.wrap(text, max(width - column - 6, 10))))
            for names, text in rows
        )

    return min(sorted({len(names) for names, _ in rows}, reverse=True), key=lines)


def _short_record(names: str, text: str) -> tuple[str, str]:
    """Return names and help of an option with short type names and without the range of valid numbers."""
    for long, short in _TYPE_NAMES.items():
        names = names.replace(long, short)
    return names, _RANGES.sub(lambda match: "]" if match[0].startswith(";") else "", text)


class LazyGroup(click.Group):
    """A group whose commands are imported on use.

    Args:
        package: package with a module for each command, which defines it as `command`.
        titled: title -> name of a command -> summary, the first line of its help.
    """

    def __init__(self, *arguments: Any, package: str, titled: Mapping[str, Mapping[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.package, self.titled = package, titled

    @property
    def summaries(self) -> dict[str, str]:
        """Name of each command -> summary."""
        return {name: summary for part in self.titled.values() for name, summary in part.items()}

    def list_commands(self, context: click.Context) -> list[str]:
        """Return all names, in the order of the help."""
        return list(self.summaries)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or refuse an unknown name and suggest a similar one."""
        name = arguments[0]
        if not context.resilient_parsing and name not in self.summaries and not name.startswith("-"):
            from phrasetool_cli.config_file import nearest

            raise click.UsageError(f"unknown command {name!r}{nearest(name, self.summaries)}", context)
        return super().resolve_command(context, arguments)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in self.summaries:
            return None
        command: click.Command = importlib.import_module(f"{self.package}.{name.replace('-', '_')}").command
        if COMPLETION in os.environ:
            _complete_files(name, command)
        return command

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options without importing a command."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=text) for name, text in self.summaries.items() if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, context, incomplete)]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, then the options."""
        self.format_commands(context, formatter)
        click.Command.format_options(self, context, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _format_examples(self, formatter)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their titles, without importing them."""
        width = max(map(len, self.summaries))
        for title, commands in self.titled.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])


def _complete_files(name: str, command: click.Command) -> None:
    """Let the shell complete the arguments and options of a command that name files.

    Args:
        name: name of the command.
        command: the command; the types of its parameters are changed.
    """
    for parameter in command.params:
        if _names_files(name, parameter):
            parameter.type = click.Path()
