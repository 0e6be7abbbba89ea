"""The flags of `phrasetool train` that are declared by settings, losses, encoders and the autoencoder themselves."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

_TRAINING, _LOSS, _ENCODER, _AUTOENCODER = "training", "loss", "encoder", "autoencoder"
_TITLES = {
    _TRAINING: "Training",
    _LOSS: "Options of losses",
    _ENCODER: "Options of encoders",
    _AUTOENCODER: "Options of --model autoencoder",
}


@dataclass(frozen=True)
class _Declared:
    """An option as one of its owners declares it.

    Attributes:
        room: `training`, `loss`, `encoder` or `autoencoder`.
        owner: what users call the owner.
        default: there.
        help: one line.
    """

    room: str
    owner: str
    default: Any
    help: str


class _DeclaredFlag(click.Option):
    """A flag made of declarations; None if it is not given."""

    def __init__(self, name: str, declared: list[_Declared]) -> None:
        self.room = declared[0].room
        self.owners = {d.room for d in declared}
        super().__init__(
            ["--" + name.replace("_", "-"), name],
            type=type(declared[0].default), default=None, metavar="X", help=_help(name, declared),
        )  # fmt: skip


class TrainCommand(click.Command):
    """A command whose flags are its own and those that are declared."""

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        """All parameters: what is to be trained first, those that are declared last."""
        own = super().get_params(context)
        chosen, declared = _flags(frozenset(str(parameter.name) for parameter in own))
        place = [parameter.name for parameter in own].index("model") + 1
        return [*own[:place], *chosen, *own[place:], *declared]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags in sections, and what there is to choose from."""
        from phrasetool.encoders import ENCODERS
        from phrasetool.objectives import OBJECTIVES
        from phrasetool.registry import registered

        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for title, what, registry in (("Losses", "loss", OBJECTIVES), ("Encoders", "encoder", ENCODERS)):
            sections[title] = [(name, registered(registry, name, what).summary) for name in registry]
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            title = _TITLES[parameter.room] if isinstance(parameter, _DeclaredFlag) else "Options"
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(title, []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def check_model(context: click.Context, common: Iterable[str]) -> None:
    """Refuse flags that the kind of model does not take.

    Args:
        context: of `train`.
        common: names of parameters that every kind of model takes.

    Raises:
        click.UsageError: naming the kind that takes a flag.
    """
    model = context.params["model"]
    common = {*common, "model"}
    for parameter in context.command.get_params(context):
        name = str(parameter.name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in common:
            continue
        rooms = parameter.owners if isinstance(parameter, _DeclaredFlag) else {_TRAINING}
        takes = {"autoencoder" if room == _AUTOENCODER else "brae" for room in rooms}
        if model not in takes:
            raise click.UsageError(f"{parameter.opts[0]} is for --model {takes.pop()}")


def autoencoder_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given values, by name, that an autoencoder declares."""
    from phrasetool.options import declared_options
    from phrasetool.training.autoencoder_settings import AutoencoderSettings

    known = declared_options(AutoencoderSettings)
    return {name: value for name, value in given.items() if name in known and value is not None}


def _flags(taken: frozenset[str]) -> tuple[list[click.Option], list[click.Option]]:
    """`--encoder` and `--loss`; and a flag for every declared name that is not taken."""
    from phrasetool.encoders import ENCODERS
    from phrasetool.objectives import OBJECTIVES

    return _made_flags(tuple(ENCODERS.items()), tuple(OBJECTIVES.items()), taken)


@functools.cache
def _made_flags(
    encoders: tuple[tuple[str, str], ...], losses: tuple[tuple[str, str], ...], taken: frozenset[str]
) -> tuple[list[click.Option], list[click.Option]]:
    declared: dict[str, list[_Declared]] = {}
    for name, declaration in _declarations(dict(encoders), dict(losses)):
        declared.setdefault(name, []).append(declaration)
    chosen = [
        click.Option(["--encoder"], type=click.Choice([name for name, _ in encoders]), default="rae", show_default=True,
                     help="How a phrase becomes a vector; see below."),
        click.Option(["--loss"], type=click.Choice([name for name, _ in losses]), default="in-batch", show_default=True,
                     help="What training minimises; see below."),
    ]  # fmt: skip
    return chosen, [_DeclaredFlag(name, found) for name, found in declared.items() if name not in taken]


def _declarations(encoders: Mapping[str, str], losses: Mapping[str, str]) -> Iterable[tuple[str, _Declared]]:
    from phrasetool.options import declared_options
    from phrasetool.registry import registered
    from phrasetool.training.autoencoder_settings import AutoencoderSettings
    from phrasetool.training.settings import TrainingSettings

    classes: list[tuple[str, str, type]] = [(_TRAINING, "", TrainingSettings)]
    classes += [(_LOSS, name, registered(losses, name, "loss")) for name in losses]
    classes += [(_ENCODER, name, registered(encoders, name, "encoder")) for name in encoders]
    classes.append((_AUTOENCODER, "autoencoder", AutoencoderSettings))
    for room, owner, cls in classes:
        for name, spec in declared_options(cls).items():
            yield name, _Declared(room, owner, spec.default, spec.help)


def _help(name: str, declared: list[_Declared]) -> str:
    """What the flag does and its default, for each of its owners."""
    if declared[0].room != _TRAINING:
        texts: dict[str, list[str]] = {}
        for d in declared:
            texts.setdefault(d.help, []).append(f"{d.owner} {_shown(d.default)}")
        return "  ".join(f"{text}  [{'; '.join(defaults)}]" for text, defaults in texts.items())
    general = declared[0].default
    defaults = [_shown(general), *_wishes(name, general)]
    defaults += [f"{d.owner} {_shown(d.default)}" for d in declared[1:]]
    return f"{declared[0].help}  [{'; '.join(defaults)}]"


def _wishes(name: str, general: Any) -> Iterable[str]:
    """Defaults of a setting that losses and encoders want different."""
    from phrasetool.encoders import ENCODERS
    from phrasetool.objectives import OBJECTIVES
    from phrasetool.registry import registered

    for what, registry in (("loss", OBJECTIVES), ("encoder", ENCODERS)):
        for owner in registry:
            wish = registered(registry, owner, what).defaults.get(name, general)
            if wish != general:
                yield f"{owner} {_shown(wish)}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
