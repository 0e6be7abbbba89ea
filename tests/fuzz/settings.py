"""Targets: TOML files with defaults of commands and with experiments."""

from __future__ import annotations

from pathlib import Path

import click

from moses_compat.experiments.config import read_experiment_config
from phrasetool.errors import PhraseToolError
from phrasetool_cli.config_file import read_config
from phrasetool_cli.main import COMMANDS, cli
from tests.fuzz.target import Target, scratch, written
from tests.small_experiment import CONFIG, DATA

_EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "experiments"
_PRUNE = """
[prune]
methods = ["semantic", "composition+semantic", "count"]
sizes = [0.6, 0.3]
thresholds.semantic = [0.3]
seeds = [1, 2]
keep_top = { "0.07" = 3, "1" = 10 }
[annotate]
tuning_seeds = [1, 2]
columns = ["semantic"]
"""
_COMMANDS = """\
[prune]
model = "m"
threshold = 0.5
threads = 2
[annotate]
scale = "exp"
model = ["a", "b"]
[decode]
n-best-list = ["list", 5]
quiet = true
"""


def _run_experiment(data: bytes) -> None:
    for name in _FILES:
        scratch(name).touch()
    read_experiment_config(written("experiment.toml", data))


def _run_defaults(data: bytes) -> None:
    with cli.make_context("phrasetool", [], resilient_parsing=True) as context:
        try:
            read_config(written("phrasetool.toml", data), COMMANDS, context)
        except click.ClickException as error:
            raise PhraseToolError(error.format_message()) from error


def _demo() -> bytes:
    """Return the experiment of the demo with paths of the target's files."""
    text = (_EXAMPLES / "demo.toml").read_text()
    for name in ("train", "dev", "test"):
        stem = "one" if name == "test" else name
        text = text.replace(f"../../demo-output/engine/{name}.zh", f"{stem}.src")
        text = text.replace(f"../../demo-output/engine/{name}.en", f"{stem}.trg")
    return text.encode()


_FILES = ("train.src", "train.trg", "dev.src", "dev.trg", "one.src", "one.trg", "two.src", "two.trg", "moses.ini")
_WORDS = (
    b"[prune]", b"[data.tests.x]", b"[[data]]", b"true", b"nan", b"inf", b"[]", b"{}", b"{a = 1}", b'""', b"'''", b"-1",
    b"1e400", b"1979-05-27", b"sizes = ", b"methods = ", b"threshold = ", b" = [[", b"[" * 200, b"a.b.c = 1",
)  # fmt: skip

TARGETS = (
    Target("experiment", [(CONFIG + _PRUNE).encode(), (DATA + _PRUNE).encode(), _demo()], _run_experiment, _WORDS),
    Target("phrasetool.toml", [_COMMANDS.encode()], _run_defaults, _WORDS),
)  # fmt: skip
