"""`phrasetool train KIND` of families that have no command of their own: it is made from their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool.models.families import ModelFamily
from phrasetool.options import imported
from phrasetool_cli.progress import ItemProgress, TerminalWatch
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.models.saved_model import SavedModel


def command_of(family: ModelFamily) -> click.Command:
    """Return the command that trains a family on its texts."""

    def run_training(texts: tuple[str, ...], **values: Any) -> None:
        run = RunOptions.taken(values)
        with run.told(texts) as tell:
            tell(_train(family, texts, run, values))

    command = click.command(
        name=family.training, cls=SettingsCommand, declared=lambda: declarations(imported(family.settings)),
        help=f"{family.summary}\n\nEach text has a tokenised sentence or phrase a line (plain or gzip).",
    )(run_options(run_training))  # fmt: skip
    command.params.insert(0, click.Argument(["texts"], nargs=len(family.texts), metavar=" ".join(family.texts)))
    command.params += model_folder_option(lambda: None).__click_params__  # type: ignore[attr-defined]
    return command


def _train(family: ModelFamily, paths: tuple[str, ...], run: RunOptions, values: dict[str, Any]) -> SavedModel:
    """Train a model on texts and report progress.

    Args:
        family: of the model.
        paths: texts to learn from.
        run: device, model folder and so on.
        values: of all other options.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: a text cannot be read, or the training fails.
    """
    import torch

    from moses_compat.corpora.texts import read_sentences
    from phrasetool.nn.device import device_name
    from phrasetool.text_splitting import split_lines

    watch = TerminalWatch(run.quiet)
    settings = settings_of(imported(family.settings), values, seed=run.seed)
    place = run.ready(paths)
    torch.set_num_threads(run.threads)
    texts = [split_lines(read_sentences(path)) for path in paths]
    watch.say(f"{', '.join(f'{len(lines):,}' for lines in texts)} lines; training on {device_name(place)}")
    with ItemProgress("train", 0, "line", run.quiet) as progress:
        training = run.training_run(
            place, watch, record={"texts": list(paths)}, on_report=lambda report: watch.say(str(report)),
            tick=progress.tick,
        )  # fmt: skip
        trained: SavedModel = imported(family.train)(texts, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained
