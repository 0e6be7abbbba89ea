"""`phrasetool.toml`: defaults for the options of commands.

A section has the name of a command, a key the long name of an option.  The command line has precedence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from phrasetool.errors import DataError, PhraseToolError
from phrasetool.text_splitting import split_lines
from phrasetool_cli.messages import hint

NAME = "phrasetool.toml"

_Section = dict[str, Any]


def find_config(named: str | None) -> str | None:
    """Return the configuration file: the named one, or `phrasetool.toml` in the current folder if it exists.

    Raises:
        PhraseToolError: the named file does not exist.
    """
    if named is not None and not os.path.exists(named):
        raise PhraseToolError(f"{named}: no such configuration file")
    return named or (NAME if os.path.isfile(NAME) else None)


def read_config(path: str, names: Collection[str], parent: click.Context) -> dict[str, _Section]:
    """Return the defaults of commands as click expects them: command -> parameter -> value.

    Args:
        path: the file.
        names: names of all commands.
        parent: the context of their group.

    Raises:
        DataError: the file is not valid TOML, or has an unknown command or option, or an invalid value.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            # Editors of Windows write a byte order mark.
            text = file.read().decode("utf-8-sig")
        sections = tomllib.loads(text)
    except RecursionError as error:
        raise DataError(path, "is nested too deeply") from error
    except UnicodeDecodeError as error:
        bad_line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(path, f"is not UTF-8 (byte 0x{error.object[error.start]:02x})", bad_line) from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"\(at line (\d+), column \d+\)", str(error))
        message = f"is not valid TOML: {str(error).replace(line[0], '').strip() if line else error}"
        raise DataError(path, message, int(line[1]) if line else None) from error
    group, defaults = parent.command, {}
    assert isinstance(group, click.Group)
    for section, options in sections.items():
        line_number = _line_of(text, section, None)
        command = group.get_command(parent, section) if section in names else None
        if command is None:
            raise DataError(path, f"unknown command {section!r}{nearest(section, names)}", line_number)
        if not isinstance(options, dict):
            raise DataError(path, f"expected a section [{section}], found a value", line_number)
        with _context(command, section, parent) as context:
            if isinstance(command, click.Group):
                defaults[section] = _group(path, text, section, context, options)
            else:
                defaults[section] = _section(path, text, section, context, options)
    return defaults


def _context(command: click.Command, name: str, parent: click.Context) -> click.Context:
    # As click creates it: a command keeps its help option, with the names from the first context that requests it.
    settings = {**command.context_settings, "info_name": name, "resilient_parsing": True}
    return click.Context(command, parent, **settings)


def _group(path: str, text: str, section: str, context: click.Context, values: _Section) -> _Section:
    """Return the defaults of a group's commands: from their sections, and options for all commands that have them."""
    group = context.command
    assert isinstance(group, click.Group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    for_all = {key: value for key, value in values.items() if not isinstance(value, dict)}
    defaults: _Section = {}
    # `model` of `train` selects the command if none is named; it was an option in earlier releases.
    if "model" in for_all:
        defaults["model"] = str(for_all.pop("model"))
        hint(f"{path}: model of {section} works for one more release; name the kind of model on the command line")
    unknown = dict(for_all)
    current = [option for command in commands.values() for option in _options_of(command, context)]
    for name, command in commands.items():
        assert command is not None
        with _context(command, name, context) as inner:
            known = _known(inner)
            # A former name of an option does not apply if it is the current name of another command's option.
            own = {
                key: value
                for key, value in for_all.items()
                if key in known or (key not in current and _present(inner, key) in known)
            }
            unknown = {key: value for key, value in unknown.items() if key not in own}
            defaults[name] = _section(path, text, section, inner, own)
            if isinstance(options := values.get(name), dict):
                defaults[name] |= _section(path, text, f"{section}.{name}", inner, options)
    for key in [*unknown, *(key for key, value in values.items() if isinstance(value, dict) and key not in commands)]:
        near = nearest(key, [*commands, *current])
        raise DataError(path, f"{section} has no option --{key}{near}", _line_of(text, section, key))
    return defaults


def _options_of(command: click.Command | None, parent: click.Context) -> list[str]:
    assert command is not None
    with _context(command, "", parent) as context:
        return list(_known(context))


def _known(context: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by their long names, without dashes."""
    options = context.command.get_params(context)
    return {_key(option): option for option in options if isinstance(option, click.Option)}


def _present(context: click.Context, key: str) -> str:
    """Return the current name of an option from its current or former name."""
    renamed: Mapping[str, str] = getattr(context.command, "renamed", {})
    return renamed.get(f"--{key}", f"--{key}").removeprefix("--")


def _section(path: str, text: str, section: str, context: click.Context, values: _Section) -> _Section:
    """Return the defaults of one command."""
    known = _known(context)
    defaults = {}
    for key, value in values.items():
        line = _line_of(text, section, key)
        name = _present(context, key)
        if name not in known:
            raise DataError(path, f"{section} has no option --{key}{nearest(key, known)}", line)
        if name != key:
            hint(f"{path}: {key} of {section} is now called {name}; the old name works for one more release")
        option = known[name]
        try:
            defaults[str(option.name)] = _typed(option, value, context)
        except click.BadParameter as error:
            raise DataError(path, f"{key} of {section}: {error.message}", line) from error
    return defaults


def _typed(option: click.Option, value: Any, context: click.Context) -> Any:
    """Check a value, and return it as the command line would provide it: flags as bool, others as strings."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.BadParameter(f"expected true or false, found {value!r}")
        return value
    if option.multiple and option.nargs > 1:
        # A single group need not be in a list, as on the command line.
        groups = value if isinstance(value, list) and any(isinstance(part, list) for part in value) else [value]
        if not all(isinstance(group, list) and len(group) == option.nargs for group in groups):
            raise click.BadParameter(f"expected a list of {option.nargs} values, or several")
        several = [[_text(part) for part in group] for group in groups]
        option.type_cast_value(context, several)
        return several
    if isinstance(value, list):
        if not (option.multiple or option.nargs > 1):
            raise click.BadParameter("expected one value, found a list")
        typed: Any = [_text(part) for part in value]
    else:
        typed = [_text(value)] if option.multiple else _text(value)
    if option.nargs > 1 and not option.multiple and not (isinstance(typed, list) and len(typed) == option.nargs):
        raise click.BadParameter(f"expected a list of {option.nargs} values")
    option.type_cast_value(context, typed)
    return typed


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise click.BadParameter(f"expected a number or a text, found {value!r}")
    return str(value)


def _key(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of a similar name, to append to a message about an unknown name; "" without one."""
    import difflib

    near = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _line_of(text: str, section: str, key: str | None) -> int | None:
    """Return the line number of a section or a key in it, which the TOML parser does not provide; None if unknown."""
    within = ""
    for number, line in enumerate(split_lines(text), 1):
        head = re.match(r"\s*\[\s*[\"']?([^\"'\]]*?)[\"']?\s*\]", line)
        word = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]", line)
        if head:
            within = head[1]
            if within == section and key is None:
                return number
        elif word and ((within == section and word[1] == key) or (not within and key is None and word[1] == section)):
            return number
    return None


def command_line_wins(
    context: click.Context, exclusive: Iterable[Iterable[str]], dependent: Iterable[tuple[str, str]] = ()
) -> None:
    """Unset configured options that exclude a typed option or lack a required one, in the parameters of the context.

    Args:
        context: context of the command.
        exclusive: groups of parameters of which the command accepts only one.
        dependent: pairs of a parameter and another one that it requires.
    """
    for alternatives in exclusive:
        if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in alternatives):
            for name in alternatives:
                _unset_configured(context, name)
    for name, required in dependent:
        if context.params[required] in (None, (), False):
            _unset_configured(context, name)


def _unset_configured(context: click.Context, name: str) -> None:
    if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
        # A single value of several parts is a tuple, too, but its parameter is None without it.
        value = context.params[name]
        context.params[name] = False if value is True else () if name in _repeatable(context) else None


def _repeatable(context: click.Context) -> set[str | None]:
    options = context.command.get_params(context)
    return {option.name for option in options if isinstance(option, click.Option) and option.multiple}
