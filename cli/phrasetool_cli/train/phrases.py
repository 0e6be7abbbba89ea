"""What `phrasetool train` does: encoders of the phrases of both languages, from pairs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.train.run import Given, RunOptions, Training

if TYPE_CHECKING:
    from moses_compat.lines.counts import CountTally
    from phrasetool.phrase_encoder.model import BilingualModel
    from phrasetool.phrase_encoder.start import Start
    from phrasetool.train.data import PhrasePairs
    from phrasetool_cli.progress import TerminalWatch

# What encoders of phrases are trained with if nothing is said.
LOSS = "in-batch"
# Words of a pair's longer side.
MAX_LENGTH = 7


def training(given: Given) -> Training:
    """Of encoders of phrases.

    Raises:
        click.UsageError: flags contradict each other, or what an autoencoder prescribes.
        ModelError: a folder does not hold an autoencoder that can serve as the encoder of phrases.
    """
    flags, (pairs,) = given.flags, given.inputs
    # An autoencoder may prescribe the encoder where none was named.
    chosen = {"seed": given.seed, **flags, "encoder": flags["encoder"] if "encoder" in given.named else None}
    chosen["loss"] = chosen["loss"] or LOSS
    starts = chosen_starts(chosen)
    chosen["encoder"] = chosen["encoder"] or flags["encoder"]
    record = {"pairs_file": pairs}
    record |= {key: flags[key] for key in ("source_autoencoder", "target_autoencoder") if flags[key]}
    kept = given.max_length or MAX_LENGTH, given.min_pair_count
    files = [pairs, *(file for start in starts for file in start.files)]
    return Training(files, lambda run: train_pairs(pairs, run, chosen, starts, kept, record))


def train_pairs(
    pairs: str, run: RunOptions, chosen: dict[str, Any], starts: tuple[Start, Start], kept: tuple[int, float],
    record: dict[str, Any],
) -> BilingualModel:  # fmt: skip
    """Train encoders of both languages."""
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.phrase_encoder.settings import TrainingSettings
    from phrasetool.phrase_encoder.start import start_parameters, with_known_words
    from phrasetool.phrase_encoder.trainer import choose_training_device, train_model
    from phrasetool.train.checks import doubting
    from phrasetool_cli.progress import TerminalWatch, TrainingProgress

    watch = TerminalWatch(run.quiet)
    tell, doubt = watch.say, doubting(watch, run.force)
    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    run.ready([pairs, *(file for start in starts for file in start.files)])
    data, starts = with_known_words(_read(pairs, kept, watch, doubt), settings, starts)
    if chosen["batch_size"] is None:
        settings = settings.with_batches_for(len(data))
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1)
    choice = choose_training_device(run.device, data, settings)
    place = choice.device
    if choice.message:
        tell(choice.message)
    torch.set_num_threads(1 if place.type == "cpu" else run.threads)
    tell(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
    tell(f"training on {device_name(place)}, loss {settings.loss}, n={settings.dimension}, "
         f"encoder {settings.encoder}, into {run.folder}")  # fmt: skip

    def known(side: str, share: float) -> None:
        tell(f"{side} word vectors: {share:.1%} of the words start from known vectors")

    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, run.quiet) as progress:
        training = run.training_run(place, watch, record=record, on_report=progress.report, tick=progress.tick)
        trained = train_model(
            data, settings, lambda: start_parameters(data, settings, starts, known, doubt), training, doubt=doubt
        )
    tell(f"saved {trained.signature} to {run.folder} after {time.monotonic() - began:.0f} s")
    return trained


def _read(pairs: str, kept: tuple[int, float], watch: TerminalWatch, doubt: Callable[[str], None]) -> PhrasePairs:
    """The pairs of a file: those of so many words at most, and of so large a count at least."""
    from moses_compat.corpora.training_pairs import UNCOUNTED, read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.train.data import check_pairs
    from phrasetool_cli.progress import TableProgress

    max_length, min_count = kept
    with Input(pairs) as source, TableProgress("read pairs", source.size(), watch.quiet) as progress:

        def counted(tally: CountTally) -> None:
            for sentence in tally.sentences(UNCOUNTED):
                watch.say(f"{source.name}: {sentence}")

        data = read_training_pairs(
            source, max_length=max_length, min_count=min_count, progress=progress, counted=counted
        )
        check_pairs(source.name, data, doubt)
    return data


_SIDES = ("source", "target")


def chosen_starts(chosen: dict[str, Any]) -> tuple[Start, Start]:
    """What both languages start from; takes it out of what was chosen, and leaves there what autoencoders prescribe.

    Raises:
        click.UsageError: flags contradict each other, or what an autoencoder prescribes.
        ModelError: a folder does not hold an autoencoder that can serve as the encoder of phrases.
    """
    from moses_compat.corpora.texts import unescaped_sentences
    from moses_compat.files.byte_stream import open_bytes
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.phrase_encoder.start import Start, prescribed_settings

    given = {side: {what: chosen.pop(f"{side}_{what}") for what in ("text", "vectors", "autoencoder")}
             for side in _SIDES}  # fmt: skip
    for side in _SIDES:
        for what in ("text", "vectors"):
            if given[side]["autoencoder"] and given[side][what]:
                raise click.UsageError(f"--{side}-autoencoder brings word vectors; leave out --{side}-{what}")
            if chosen["vectors"] == "random" and given[side][what]:
                raise click.UsageError(f"--vectors random draws all word vectors; leave out --{side}-{what}")
    folders = [given[side]["autoencoder"] for side in _SIDES]
    if chosen["vectors"] and all(folders):
        raise click.UsageError("autoencoders bring word vectors; leave out --vectors")
    models = [AutoencoderModel.load(folder) if folder else None for folder in folders]
    for folder, model in zip(folders, models, strict=True):
        if model is not None:
            try:
                chosen.update(prescribed_settings(model, folder, chosen))
            except ValueError as error:
                raise click.UsageError(str(error)) from error
    if chosen.get("transformation") == "identity" and not all(given[side]["vectors"] for side in _SIDES):
        raise click.UsageError("--transformation identity is for word vectors of one space; name them with "
                               "--source-vectors and --target-vectors")  # fmt: skip
    named = [tuple(filter(None, (*given[side]["text"], given[side]["vectors"]))) for side in _SIDES]
    source, target = (
        Start(functools.partial(unescaped_sentences, given[side]["text"]) if given[side]["text"] else None,
              given[side]["vectors"], model, folder or ", ".join(files), files, open_bytes)
        for side, folder, model, files in zip(_SIDES, folders, models, named, strict=True)
    )  # fmt: skip
    return source, target
