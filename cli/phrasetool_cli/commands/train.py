"""`phrasetool train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from phrasetool.errors import DataError
from phrasetool_cli.shared import training_flags
from phrasetool_cli.shared.flags import default_model

if TYPE_CHECKING:
    from phrasetool.training.autoencoder import EpochReport
    from phrasetool.training.start import Start

_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz -o model
  phrasetool train pairs.gz --encoder mean-max --loss syn-projection
  phrasetool train --model autoencoder mono.en.gz -o autoencoder.en
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --iterations 60
"""


@click.command(cls=training_flags.TrainCommand, epilog=_EXAMPLE)
@click.argument("pairs")
@training_flags.train_options
def command(
    pairs: str, folder: str | None, model: str, seed: int, device: str, threads: int, resume: bool,
    max_length: int | None, min_pair_count: float, quiet: bool, force: bool,
    **others: Any,
) -> None:  # fmt: skip
    """Train a model on phrase pairs, or on text of one language.

    PAIRS has lines `source ||| target[ ||| count]` (pairs used in forced decoding are best), or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs themselves.

    With --model autoencoder, PAIRS is text of one language instead, a sentence a line.
    """
    context = click.get_current_context()
    training_flags.check_model(context)
    path = Path(folder or default_model())
    if model == "autoencoder":
        options = training_flags.autoencoder_options({**others, "max_length": max_length})
        _train_autoencoder(pairs, path, seed, options, device, threads, resume, quiet)
        return
    given_encoder = context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE
    chosen = {"seed": seed, **others, "encoder": others["encoder"] if given_encoder else None}
    starts = training_flags.chosen_starts(chosen)
    chosen["encoder"] = chosen["encoder"] or others["encoder"]
    record = {"pairs_file": pairs}
    record |= {key: others[key] for key in ("source_autoencoder", "target_autoencoder") if others[key]}
    kept = max_length or training_flags.MAX_LENGTH, min_pair_count
    _train(pairs, path, chosen, starts, kept, record, device, threads, resume, quiet, force)


def _train(
    pairs: str, path: Path, chosen: dict[str, Any], starts: tuple[Start, Start], kept: tuple[int, float],
    record: dict[str, Any], device: str, threads: int, resume: bool, quiet: bool, force: bool,
) -> None:  # fmt: skip
    """Train encoders of both languages."""
    import torch

    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.training.device import choose_device, device_name
    from phrasetool.training.settings import TrainingSettings
    from phrasetool.training.start import start_parameters
    from phrasetool.training.trainer import train_model
    from phrasetool_cli.shared.progress import TableProgress, TerminalWatch, TrainingProgress

    watch = TerminalWatch(quiet)
    tell = watch.say
    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with Input(pairs) as source, TableProgress("read pairs", source.size(), quiet) as progress:
        data = read_training_pairs(source, max_length=kept[0], min_count=kept[1], progress=progress)
    if chosen["batch_size"] is None:
        settings = settings.with_batches_for(len(data))
    place = choose_device(device)
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1 if place.type == "cpu" else threads)
    tell(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
    tell(f"training on {device_name(place)}, loss {settings.loss}, n={settings.dimension}, "
         f"encoder {settings.encoder}, into {path}")  # fmt: skip

    def known(side: str, share: float) -> None:
        tell(f"{side} word vectors: {share:.1%} of the words start from known vectors")

    unfit = (lambda error: watch.warn(str(error))) if force else None
    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, quiet) as training:
        trained = train_model(
            data, settings, lambda: start_parameters(data, settings, starts, known, unfit), path, device=place,
            resume=resume, record=record, on_report=training.report, tick=training.tick,
        )  # fmt: skip
    tell(f"saved {trained.signature} to {path} after {time.monotonic() - began:.0f} s")


def _train_autoencoder(
    text: str, path: Path, seed: int, options: dict[str, Any], device: str, threads: int, resume: bool, quiet: bool
) -> None:
    """Train an autoencoder on text of one language."""
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.training.autoencoder import train_autoencoder
    from phrasetool.training.autoencoder_settings import AutoencoderSettings
    from phrasetool.training.device import choose_device
    from phrasetool.training.text_vocabulary import training_texts
    from phrasetool_cli.shared.progress import ItemProgress, TableProgress, TerminalWatch

    tell = TerminalWatch(quiet).say
    try:
        settings = AutoencoderSettings.from_options(options, seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    place = choose_device(device)
    torch.set_num_threads(threads)
    with TableProgress("read text", 0, quiet) as reading:
        everything, symbols = read_texts(text, reading)
    try:
        data = training_texts(everything, symbols.words, settings)
    except ValueError as error:
        raise DataError(text, str(error)) from error
    if data.left_out:
        tell(f"{data.left_out:,} lines of more than {settings.max_length} words are left out")
    tell(f"{len(data.texts):,} texts, {len(data.vocabulary) - 1:,} words, {data.unknown:.1%} of the text unknown")
    tell(f"training on {place}, {settings.architecture} autoencoder, n={settings.shape.dimension}, into {path}")

    def report(done: EpochReport) -> None:
        tell(f"epoch {done.epoch}/{settings.epochs}: cross-entropy {done.cross_entropy:.4f} a word")

    with ItemProgress("train", settings.epochs * len(data.texts), "text", quiet) as progress:
        trained = train_autoencoder(
            data.texts, data.vocabulary, settings, path, device=place, resume=resume, record={"text_file": text},
            on_report=report, tick=progress.tick,
        )  # fmt: skip
        tell(f"saved {trained.signature} to {path} after {progress.seconds:.0f} s")
