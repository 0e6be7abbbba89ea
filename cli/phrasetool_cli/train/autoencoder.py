"""`phrasetool train autoencoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from phrasetool.autoencoder.settings import AutoencoderSettings
from phrasetool.errors import DataError
from phrasetool_cli.checks import refuse_unused
from phrasetool_cli.command import sections
from phrasetool_cli.train.run import RunOptions, model_folder_option, run_options
from phrasetool_cli.train.setting_options import SettingsCommand, declarations, settings_of

if TYPE_CHECKING:
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.autoencoder.training import EpochReport


_EXAMPLE = """\b
Example:
  phrasetool train autoencoder mono.en.gz -o autoencoder.en
  phrasetool train autoencoder demo-output/corpus.en -o autoencoder --epochs 60
"""


@click.command(cls=SettingsCommand, declared=lambda: declarations(AutoencoderSettings), epilog=_EXAMPLE)
@click.argument("text")
@sections("Output", model_folder_option, None, run_options)
def command(text: str, **values: Any) -> None:
    """Train an autoencoder of sentences on text.

    TEXT is in one language, with one tokenised sentence per line.
    """
    run = RunOptions.taken(values)
    with run.document([text]) as document:
        document(_train(text, run, values))


def _train(text: str, run: RunOptions, values: dict[str, Any]) -> AutoencoderModel:
    """Train an autoencoder and report progress.

    Args:
        text: path of the text.
        run: device, model folder and so on.
        values: values of all other options.

    Raises:
        click.UsageError: an option is out of range.
        PhraseToolError: the text cannot be read or is implausible, or the model cannot be written.
    """
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.autoencoder.settings import AutoencoderSettings
    from phrasetool.autoencoder.training import train_autoencoder, training_texts
    from phrasetool_cli.progress import TableProgress, TerminalWatch

    watch = TerminalWatch(run.quiet)
    settings = settings_of(AutoencoderSettings, values, seed=run.seed)
    if settings.shape.recurrent:
        reason = f"self-attention; the architecture {settings.architecture} has none"
        refuse_unused({"heads": reason, "feed_forward": reason})
    device = run.ready([text], settings.precision)
    torch.set_num_threads(run.threads)
    with TableProgress("read text", 0, run.quiet) as reading:
        everything, symbols = read_texts(text, reading)
    try:
        data = training_texts(everything, symbols.words, settings)
    except ValueError as error:
        raise DataError(text, str(error)) from error
    if data.left_out:
        watch.say(f"{data.left_out:,} lines of more than {settings.max_length} words are left out")
    watch.say(f"{len(data.texts):,} texts, {len(data.vocabulary) - 1:,} words, {data.unknown:.1%} of the text unknown")
    shape = settings.shape
    watch.say(f"training on {device}, {shape.name} autoencoder, n={shape.dimension}, into {run.folder}")

    def report(done: EpochReport) -> None:
        watch.say(f"epoch {done.epoch}/{settings.epochs}: cross-entropy {done.cross_entropy:.4f} a word")

    with run.progress(settings.epochs, len(data.texts), "text") as progress:
        training = run.training_run(device, watch, record={"text_file": text}, on_report=report, tick=progress.tick)
        trained = train_autoencoder(data.texts, data.vocabulary, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained
