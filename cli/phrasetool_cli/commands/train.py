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
from phrasetool_cli.shared.training_run import TrainingRun

if TYPE_CHECKING:
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.training.autoencoder import EpochReport
    from phrasetool.training.start import Start

_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz -o model
  phrasetool train pairs.gz --encoder mean-max --loss syn-projection
  phrasetool train table.gz --encoder mean --transformation identity --source-vectors de.vec --target-vectors en.vec
  phrasetool train --model autoencoder mono.en.gz -o autoencoder.en
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --iterations 60
"""


@click.command(cls=training_flags.TrainCommand, epilog=_EXAMPLE)
@click.argument("pairs")
@training_flags.train_options
def command(
    pairs: str, folder: str | None, model: str, seed: int, device: str, threads: int, resume: bool, overwrite: bool,
    force: bool, max_length: int | None, min_pair_count: float, json_file: str | None, quiet: bool, **others: Any,
) -> None:  # fmt: skip
    """Train a model on phrase pairs, or on text of one language.

    PAIRS has lines `source ||| target[ ||| count]` (pairs used in forced decoding are best), or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs themselves.

    With --model autoencoder, PAIRS is text of one language instead, a sentence a line.
    """
    training_flags.check_model(context := click.get_current_context())
    run = TrainingRun(Path(folder or default_model()), device, threads, resume, overwrite, force, quiet, json_file)
    if model == "autoencoder":
        with run.told([pairs]) as tell:
            options = training_flags.autoencoder_options({**others, "max_length": max_length})
            tell(_train_autoencoder(pairs, run, seed, options))
        return
    given = context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE
    chosen = {"seed": seed, **others, "encoder": others["encoder"] if given else None}
    starts = training_flags.chosen_starts(chosen)
    chosen["encoder"] = chosen["encoder"] or others["encoder"]
    record = {"pairs_file": pairs}
    record |= {key: others[key] for key in ("source_autoencoder", "target_autoencoder") if others[key]}
    kept = max_length or training_flags.MAX_LENGTH, min_pair_count
    with run.told([pairs, *(file for start in starts for file in start.files)]) as tell:
        tell(_train(pairs, run, chosen, starts, kept, record))


def _train(
    pairs: str, run: TrainingRun, chosen: dict[str, Any], starts: tuple[Start, Start], kept: tuple[int, float],
    record: dict[str, Any],
) -> BilingualModel:  # fmt: skip
    """Train encoders of both languages."""
    import torch

    from phrasetool.training.device import device_name
    from phrasetool.training.fixed_words import with_known_words
    from phrasetool.training.plausibility import doubting
    from phrasetool.training.settings import TrainingSettings
    from phrasetool.training.start import start_parameters
    from phrasetool.training.trainer import train_model
    from phrasetool_cli.shared.progress import TerminalWatch, TrainingProgress

    watch = TerminalWatch(run.quiet)
    tell, doubt = watch.say, doubting(watch, run.force)
    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    place = run.ready([pairs, *(file for start in starts for file in start.files)])
    data, starts = with_known_words(run.read_pairs(pairs, *kept, doubt), settings, starts)
    if chosen["batch_size"] is None:
        settings = settings.with_batches_for(len(data))
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1 if place.type == "cpu" else run.threads)
    tell(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
    tell(f"training on {device_name(place)}, loss {settings.loss}, n={settings.dimension}, "
         f"encoder {settings.encoder}, into {run.folder}")  # fmt: skip

    def known(side: str, share: float) -> None:
        tell(f"{side} word vectors: {share:.1%} of the words start from known vectors")

    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, run.quiet) as training:
        trained = train_model(
            data, settings, lambda: start_parameters(data, settings, starts, known, doubt), run.folder, device=place,
            resume=run.resume, overwrite=run.overwrite, record=record, on_report=training.report, tick=training.tick,
            doubt=doubt,
        )  # fmt: skip
    tell(f"saved {trained.signature} to {run.folder} after {time.monotonic() - began:.0f} s")
    return trained


def _train_autoencoder(text: str, run: TrainingRun, seed: int, options: dict[str, Any]) -> AutoencoderModel:
    """Train an autoencoder on text of one language."""
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.training.autoencoder import train_autoencoder
    from phrasetool.training.autoencoder_settings import AutoencoderSettings
    from phrasetool.training.text_vocabulary import training_texts
    from phrasetool_cli.shared.progress import ItemProgress, TableProgress, TerminalWatch

    watch = TerminalWatch(run.quiet)
    try:
        settings = AutoencoderSettings.from_options(options, seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    place = run.ready([text])
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
    watch.say(f"training on {place}, {shape.name} autoencoder, n={shape.dimension}, into {run.folder}")

    def report(done: EpochReport) -> None:
        watch.say(f"epoch {done.epoch}/{settings.epochs}: cross-entropy {done.cross_entropy:.4f} a word")

    with ItemProgress("train", settings.epochs * len(data.texts), "text", run.quiet) as progress:
        trained = train_autoencoder(
            data.texts, data.vocabulary, settings, run.folder, device=place, resume=run.resume, overwrite=run.overwrite,
            force=run.force, warn=watch.warn, record={"text_file": text}, on_report=report, tick=progress.tick,
        )  # fmt: skip
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained
