"""Every option refuses whole numbers that overflow the integers of kernels and libraries."""

import click
import pytest

from phrasetool_cli.command import LARGEST_NUMBER
from phrasetool_cli.commands.train import KINDS
from phrasetool_cli.main import COMMANDS, cli
from tests.commands import run_inside

_COMMANDS = [(name,) for name in COMMANDS if name not in ("train", "ems-prune")] + [("train", kind) for kind in KINDS]
# Arguments that are checked before the size of a number.
_ARGUMENTS = {"threshold-filter": ["0:0.1"]}
_WITHOUT = ("compile", "demo", "evaluate-mining")


def parameters_of(names):
    """Return the parameters of a command, named by its path of names."""
    with cli.make_context("phrasetool", [], resilient_parsing=True) as context:
        for name in names:
            context = click.Context(context.command.get_command(context, name), parent=context, info_name=name)
        return context.command.get_params(context)


def required(parameters, name):
    """Return arguments for all required parameters."""
    words = list(_ARGUMENTS.get(name, ()))
    for parameter in parameters:
        if not parameter.required:
            continue
        if isinstance(parameter, click.Option):
            value = parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else "x"
            words += [parameter.opts[-1], *[value] * parameter.nargs]
        elif name not in _ARGUMENTS:
            words += ["x"] * max(parameter.nargs, 1)
    return words


@pytest.mark.parametrize("names", _COMMANDS, ids="-".join)
def test_too_large_numbers(names):
    parameters = parameters_of(names)
    count = 0
    for option in parameters:
        kinds = option.type.types if isinstance(option.type, click.Tuple) else [option.type]
        # Values that are ignored, such as that of `filter-pt -m`, are not exposed.
        if not (option.expose_value and any(isinstance(kind, click.types.IntParamType) for kind in kinds)):
            continue
        count += 1
        for number in (10**20, LARGEST_NUMBER + 1):
            values = ["x"] * (len(kinds) - 1) + [number]
            outcome = run_inside(*names, *required(parameters, names[0]), option.opts[-1], *values)
            assert outcome.code == 2, (option.name, outcome.message)
            assert f"{number} is not in the range" in outcome.message, option.name
    assert bool(count) != (names[0] in _WITHOUT)
