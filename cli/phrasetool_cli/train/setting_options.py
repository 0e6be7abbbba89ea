"""Command-line options that settings, losses and architectures of models declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from phrasetool.options import DeclaredSettings, declared_options
from phrasetool_cli.checks import is_given
from phrasetool_cli.command import SectionedCommand, give_title

Settings = TypeVar("Settings", bound=DeclaredSettings)
# Key of the typed arguments of a command in the context.
ARGUMENTS = "phrasetool.train.arguments"
_SETTINGS, _OWNED = "Settings", "Loss and architecture"
_METAVARS = {int: "N", float: "X", str: "NAME"}


@dataclass(frozen=True)
class Declaration:
    """An option that a class declares.

    Attributes:
        name: name of the field.
        default: value if the option is not given.
        help: one line.
        owner: the loss or architecture that declares it; "" for the settings of the model family.
    """

    name: str
    default: Any
    help: str
    owner: str = ""


@dataclass(frozen=True)
class Shown:
    """Declared options that `--help` shows, and their defaults.

    Attributes:
        owners: losses and architectures whose options are shown.
        defaults: name -> default value that differs from the declared one.
    """

    owners: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def declarations(settings: type, owner: str = "") -> list[Declaration]:
    """Return the options that a class declares.

    Args:
        settings: the class.
        owner: name of the loss or architecture; "" for the settings of a model family.
    """
    return [
        Declaration(name, spec.default, _with_presets(spec.metadata["help"], settings, name), owner)
        for name, spec in declared_options(settings).items()
    ]


def _with_presets(text: str, settings: type, name: str) -> str:
    """Return the help of an option with the values of the presets that change its default."""
    presets = settings.preset_overrides if issubclass(settings, DeclaredSettings) else {}
    values = [f"{preset}: {_written(values[name])}" for preset, values in presets.items() if name in values]
    return f"{text.removesuffix('.')} (preset {', '.join(values)})." if values else text


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


class SettingOption(click.Option):
    """An option made of declarations with the same name; its value is None if it is not given.

    Args:
        flag: name of the option, without dashes.
        declared: its declarations.
    """

    def __init__(self, flag: str, declared: Sequence[Declaration]) -> None:
        self.declared = declared
        (kind,) = {type(declaration.default) for declaration in declared}
        super().__init__(
            [f"--{flag}", declared[0].name], type=kind, default=None, metavar=_METAVARS[kind], help=declared[0].help
        )
        give_title(self, _OWNED if declared[0].owner else _SETTINGS)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help with the default; None if no shown loss or architecture has the option."""
        command = ctx.command
        shown = command.shown(ctx) if isinstance(command, SettingsCommand) else Shown()
        for declaration in self.declared:
            if not declaration.owner or declaration.owner in shown.owners:
                default = shown.defaults.get(declaration.name, declaration.default)
                return f"{self.opts[0]} {self.metavar}", f"{declaration.help}  [default: {_written(default)}]"
        return None


class SettingsCommand(SectionedCommand):
    """A command whose options are its own and those that classes declare.

    Args:
        declared: returns the declarations, in order.
        shown: returns what `--help` shows for the arguments; None for options without an owner, with the declared
            defaults.
        flags: name of a setting -> name of its option, where they differ; None for settings without an option.
        exclusive: see `SectionedCommand`; `--resume` and `--overwrite` are added.
    """

    def __init__(
        self, *arguments: Any, declared: Callable[[], Iterable[Declaration]],
        shown: Callable[[Sequence[str]], Shown] | None = None, flags: Mapping[str, str | None] | None = None,
        exclusive: Sequence[Sequence[str]] = (), **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__(*arguments, exclusive=(*exclusive, ("resume", "overwrite")), **settings)
        self._declared, self._shown, self._flags = declared, shown, dict(flags or {})
        self._made: tuple[tuple[Declaration, ...], list[click.Option]] | None = None

    def shown(self, context: click.Context) -> Shown:
        """Return what `--help` shows of the declared options."""
        return Shown() if self._shown is None else self._shown(context.meta.get(ARGUMENTS, ()))

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        """Return all parameters, those that classes declare last."""
        declared = tuple(self._declared())
        # Declarations change if a loss or an architecture is registered.
        if self._made is None or self._made[0] != declared:
            by_name: dict[str, list[Declaration]] = {}
            for declaration in declared:
                by_name.setdefault(declaration.name, []).append(declaration)
            flags = {name: self._flags.get(name, name.replace("_", "-")) for name in by_name}
            self._made = declared, [SettingOption(flag, by_name[name]) for name, flag in flags.items() if flag]
        return [*super().get_params(context), *self._made[1]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, and store them as typed.

        Raises:
            click.UsageError: an option is unknown; the message names the kinds of models that have it.
        """
        ctx.meta[ARGUMENTS] = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            group = ctx.parent.command if ctx.parent else None
            kinds = _kinds_with(error.option_name, group, ctx) if isinstance(group, click.Group) else []
            if kinds:
                raise click.UsageError(f"{error.option_name} is for `train {' or '.join(kinds)}`", ctx) from error
            raise


def _kinds_with(option: str, group: click.Group, context: click.Context) -> list[str]:
    """Return the commands of a group that have an option."""
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return [
        name
        for name, command in commands.items()
        if command is not None and any(option in parameter.opts for parameter in command.get_params(context))
    ]


def of_chosen(values: Mapping[str, Any], declared: Iterable[Declaration], *chosen: str) -> dict[str, Any]:
    """Return the values without configured options that only other losses and architectures have.

    Args:
        values: values of all options of a command.
        declared: the declarations of the command.
        chosen: the chosen loss and architecture.
    """
    owners: dict[str, set[str]] = {}
    for declaration in declared:
        owners.setdefault(declaration.name, set()).add(declaration.owner)
    unused = {name for name, of_name in owners.items() if of_name.isdisjoint(("", *chosen)) and not is_given(name)}
    return {name: None if name in unused else value for name, value in values.items()}


def given_options(settings: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those options of a class that were given.

    Args:
        settings: the class.
        values: values of all options of a command; None for options that were not given.
    """
    return {name: values[name] for name in declared_options(settings) if values.get(name) is not None}


def settings_of(kind: type[Settings], values: Mapping[str, Any], **fixed: Any) -> Settings:
    """Return settings with the values of given options.

    Args:
        kind: class of the settings.
        values: values of all options of a command; None for options that were not given.
        fixed: values of fields that are not options; None for the default.

    Raises:
        click.UsageError: an option is out of range.
    """
    try:
        return kind.from_options(given_options(kind, values), **fixed)
    except ValueError as error:
        raise usage_error(error) from error


def usage_error(error: ValueError) -> click.UsageError:
    """Convert the error of a setting to one of the running command, whose option may have another name.

    Args:
        error: its message begins with the name of a setting.
    """
    setting = re.match(r"\w*", str(error))
    name = setting[0] if setting else ""
    context = click.get_current_context()
    for parameter in context.command.get_params(context):
        option = max(parameter.opts, key=len).removeprefix("--")
        if parameter.name == name and option.replace("-", "_") != name:
            return click.UsageError(option + str(error)[len(name) :])
    return click.UsageError(str(error))
