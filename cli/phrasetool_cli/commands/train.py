"""`phrasetool train`: a group of the kinds of models, whose options are in `phrasetool_cli.train`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from phrasetool.models.families import FAMILIES, ModelFamily
from phrasetool_cli.command import LazyGroup
from phrasetool_cli.messages import hint

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from phrasetool.models.saved_model import SavedModel
    from phrasetool_cli.train.run import RunOptions


class _Kinds(Mapping[str, str]):
    """Name of each kind of training -> summary, from the registry of model families."""

    def __getitem__(self, name: str) -> str:
        return {family.training: family.summary for family in FAMILIES.values()}[name]

    def __iter__(self) -> Iterator[str]:
        return (family.training for family in FAMILIES.values())

    def __len__(self) -> int:
        return len(FAMILIES)


KINDS = _Kinds()
# Former names of kinds, given with `--model`, which works for one more release.
_FORMER = {name: family.training for name, family in FAMILIES.items() if name != family.training}
_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train translator train.de train.en --dev dev.de dev.en
"""


class _TrainGroup(LazyGroup):
    """The kinds of models; arguments without a kind are those of `phrases`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the kind, which comes first."""
        return super().parse_args(ctx, self._with_kind(args, ctx))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import a command, or generate it from the settings of a family."""
        family = next((family for family in FAMILIES.values() if family.training == name), None)
        if family is None or not family.train:
            return super().get_command(context, name)
        return _command_of(family)

    def _with_kind(self, arguments: Sequence[str], context: click.Context) -> list[str]:
        names = list(arguments)
        for i, argument in enumerate(names[: names.index("--") if "--" in names else None]):
            name, equals, value = argument.partition("=")
            if name == "--model":
                return self._former_kind(names, i, value if equals else None, context)
        if not names or names[0] in (*KINDS, *context.help_option_names):
            return names
        # An option is followed by its value, which may be a folder with the name of a kind.
        behind = [name for before, name in pairwise(names) if not before.startswith("-")]
        misplaced = [name for name in behind if name in KINDS and not os.path.exists(name)]
        if misplaced and not context.resilient_parsing:
            raise click.UsageError(f"the kind of model comes first, as in `train {misplaced[0]} ...`", context)
        configured = (context.default_map or {}).get("model", "phrases")
        return [_FORMER.get(configured, configured), *names]

    @staticmethod
    def _former_kind(names: list[str], place: int, value: str | None, context: click.Context) -> list[str]:
        """Replace `--model NAME` by the kind of model."""
        rest = names[:place] + names[place + (1 if value is not None else 2) :]
        former = value if value is not None else "".join(names[place + 1 : place + 2])
        kind = _FORMER.get(former, former)
        if kind not in KINDS:
            raise click.UsageError(f"unknown kind of model {former!r}; expected one of {', '.join(KINDS)}", context)
        if not context.resilient_parsing and {"-q", "--quiet"}.isdisjoint(rest):
            hint(f"`train --model {former}` is now `train {kind}`; the old form works for one more release")
        return [kind, *rest]


def _command_of(family: ModelFamily) -> click.Command:
    """Return a command, generated from the settings of a family, that trains it on texts."""
    from phrasetool.options import imported
    from phrasetool_cli.command import sections
    from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
    from phrasetool_cli.train.setting_options import SettingsCommand, declarations

    @click.command(
        name=family.training, cls=SettingsCommand, declared=lambda: declarations(imported(family.settings)),
        help=f"{family.summary}\n\nEach text has one tokenised sentence or phrase per line (plain or gzip).",
    )  # fmt: skip
    @click.argument("texts", nargs=len(family.texts), metavar=" ".join(family.texts))
    @sections("Output", model_folder_option, None, run_options)
    def command(texts: tuple[str, ...], **values: Any) -> None:
        run = RunOptions.taken(values)
        with run.document(texts) as document:
            document(_train(family, texts, run, values))

    return command


def _train(family: ModelFamily, paths: tuple[str, ...], run: RunOptions, values: dict[str, Any]) -> SavedModel:
    """Train a model on texts and report progress.

    Args:
        family: family of the model.
        paths: texts to learn from.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: a text cannot be read, or the training fails.
    """
    import torch

    from moses_compat.corpora.texts import read_sentences
    from phrasetool.nn.device import device_name
    from phrasetool.options import imported
    from phrasetool.text_splitting import split_lines
    from phrasetool_cli.progress import ItemProgress, TerminalWatch
    from phrasetool_cli.train.setting_options import settings_of

    watch = TerminalWatch(run.quiet)
    settings = settings_of(imported(family.settings), values, seed=run.seed)
    device = run.ready(paths)
    torch.set_num_threads(run.threads)
    texts = [split_lines(read_sentences(path)) for path in paths]
    watch.say(f"{', '.join(f'{len(lines):,}' for lines in texts)} lines; training on {device_name(device)}")

    def report(epoch: DataclassInstance) -> None:
        figures = {name: f"{v:.4g}" if isinstance(v, float) else v for name, v in asdict(epoch).items()}
        watch.say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items()))

    with ItemProgress("train", None, "line", run.quiet) as progress:
        training = run.training_run(
            device, watch, record={"texts": list(paths)}, on_report=report, tick=progress.tick
        )  # fmt: skip
        trained: SavedModel = imported(family.train)(texts, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


@click.group(cls=_TrainGroup, package="phrasetool_cli.train", titled={"Kinds of models": KINDS}, epilog=_EXAMPLE,
             subcommand_metavar="[KIND] ARGUMENTS")  # fmt: skip
def command() -> None:
    """Train a model on phrase pairs, bitexts, text or treebanks.

    `phrasetool train PAIRS` without a kind trains phrases.  `phrasetool train KIND --help` lists the options of a kind.
    """
