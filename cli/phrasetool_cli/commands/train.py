"""`phrasetool train`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from phrasetool_cli.shared.click_options import available_processors, default_model
from phrasetool_cli.shared.train_options import TrainCommand, autoencoder_options, check_model

if TYPE_CHECKING:
    from phrasetool.training.pairs import PhrasePairs
    from phrasetool.training.settings import TrainingSettings
    from phrasetool_cli.shared.train_start import Start

# Parameters that every kind of model takes.
_COMMON = ("pairs", "folder", "seed", "device", "threads", "resume", "max_length", "quiet")
_MAX_LENGTH = 7

_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz -o model
  phrasetool train pairs.gz --encoder mean-max --loss syn-projection
  phrasetool train --model autoencoder mono.en.gz -o autoencoder.en
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --iterations 60
"""


@click.command(cls=TrainCommand, epilog=_EXAMPLE)
@click.argument("pairs")
@click.option("-o", "--output", "folder", metavar="FOLDER",
              help="Model folder to write.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]")  # fmt: skip
@click.option("--model", type=click.Choice(["brae", "autoencoder"]), default="brae", show_default=True,
              help="What to train: bilingually-constrained encoders on pairs, or an autoencoder on text.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Fixes everything.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda or auto.")
@click.option("--threads", type=click.IntRange(1), default=available_processors, metavar="N",
              help="CPU threads; on pairs, two are used at most.  [default: all processors]")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in the model folder.")
@click.option("--max-length", type=click.IntRange(1), metavar="N",
              help=f"Leave out pairs with more words on a side.  [{_MAX_LENGTH}; autoencoder 511]")  # fmt: skip
@click.option("--min-pair-count", type=float, default=0, metavar="C",
              help="Leave out pairs with a smaller count (of a table: the joint count).")  # fmt: skip
@click.option("--source-text", multiple=True, metavar="FILE", help="Monolingual text to train word vectors on.")
@click.option("--target-text", multiple=True, metavar="FILE", help="The same for the target language.")
@click.option("--source-vectors", metavar="FILE",
              help="Word vectors to start from: word2vec, GloVe or fastText, text or binary.")  # fmt: skip
@click.option("--target-vectors", metavar="FILE", help="The same for the target language.")
@click.option("--source-autoencoder", metavar="FOLDER",
              help="Start from the encoder of an autoencoder, trained on the source language.")  # fmt: skip
@click.option("--target-autoencoder", metavar="FOLDER", help="The same for the target language.")
@click.option("--freeze-encoders", is_flag=True, help="Train nothing but the transformations between the languages.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(
    pairs: str,
    folder: str | None,
    model: str,
    seed: int,
    device: str,
    threads: int,
    resume: bool,
    max_length: int | None,
    min_pair_count: float,
    quiet: bool,
    **others: Any,
) -> None:
    """Learn what phrases mean from PAIRS.

    PAIRS has lines `source ||| target[ ||| count]` (pairs used in forced decoding are best), or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs themselves.

    With --model autoencoder, PAIRS is text of one language instead, a sentence a line.
    """
    context = click.get_current_context()
    check_model(context, _COMMON)
    path = Path(folder or default_model())
    if model == "autoencoder":
        from phrasetool_cli.shared.train_autoencoder import run_autoencoder_training

        options = autoencoder_options({**others, "max_length": max_length})
        run_autoencoder_training(pairs, path, seed, device, threads, resume, quiet, options)
        return
    given_encoder = context.get_parameter_source("encoder") is ParameterSource.COMMANDLINE
    chosen = {"seed": seed, **others, "encoder": others["encoder"] if given_encoder else None}
    start = _start(chosen, quiet)
    chosen["encoder"] = chosen["encoder"] or others["encoder"]
    data, settings = _data_and_settings(pairs, chosen, max_length or _MAX_LENGTH, min_pair_count, quiet)
    folders = {key: others[key] for key in ("source_autoencoder", "target_autoencoder") if others[key]}
    _train(data, settings, start, path, device, threads, resume, {"pairs_file": pairs, **folders}, quiet)


def _start(chosen: dict[str, Any], quiet: bool) -> Start:
    """What to start from; takes it out of what was chosen, and leaves there what autoencoders prescribe."""
    from phrasetool_cli.shared.train_start import Start, load_autoencoders

    pairs = {what: (chosen.pop(f"source_{what}"), chosen.pop(f"target_{what}"))
             for what in ("text", "vectors", "autoencoder")}  # fmt: skip
    for which, side in enumerate(("source", "target")):
        for what in ("text", "vectors"):
            if pairs["autoencoder"][which] and pairs[what][which]:
                raise click.UsageError(f"--{side}-autoencoder brings word vectors; leave out --{side}-{what}")
            if chosen["vectors"] == "random" and pairs[what][which]:
                raise click.UsageError(f"--vectors random draws all word vectors; leave out --{side}-{what}")
    if chosen["vectors"] and all(pairs["autoencoder"]):
        raise click.UsageError("autoencoders bring word vectors; leave out --vectors")
    autoencoders = load_autoencoders(pairs["autoencoder"], chosen)
    return Start(pairs["text"], pairs["vectors"], autoencoders, quiet)


def _data_and_settings(
    pairs: str, chosen: dict[str, Any], max_length: int, min_count: float, quiet: bool
) -> tuple[PhrasePairs, TrainingSettings]:
    """Read the pairs, if the settings are good."""
    from moses_compat.corpora.training_pairs import read_training_pairs
    from moses_compat.files.streams import Input
    from phrasetool.training.settings import TrainingSettings, batch_size_for, preset
    from phrasetool_cli.shared.progress import TableProgress

    try:
        settings = TrainingSettings.for_loss(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with Input(pairs) as source, TableProgress("read pairs", source.size(), quiet) as progress:
        data = read_training_pairs(source, max_length=max_length, min_count=min_count, progress=progress)
    if chosen["batch_size"] is None and "batch_size" not in preset(settings.loss, settings.encoder):
        settings = replace(settings, batch_size=batch_size_for(len(data)))
    return data, settings


def _train(
    data: PhrasePairs, settings: TrainingSettings, start: Start, path: Path, device: str, threads: int, resume: bool,
    record: dict[str, Any], quiet: bool,
) -> None:  # fmt: skip
    import torch

    from phrasetool.training.device import choose_device
    from phrasetool.training.run import train_model
    from phrasetool_cli.shared.progress import TrainingProgress, say

    place = choose_device(device)
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1 if place.type == "cpu" else threads)
    if not quiet:
        say(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
        say(f"training on {_describe(place)}, loss {settings.loss}, n={settings.dimension}, "
            f"encoder {settings.encoder}, into {path}")  # fmt: skip
    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, quiet) as progress:
        trained = train_model(
            data, settings, lambda: start.parameters(data, settings), path, device=place, resume=resume, record=record,
            on_report=progress.report, tick=progress.tick,
        )  # fmt: skip
    if not quiet:
        say(f"saved {trained.signature} to {path} after {time.monotonic() - began:.0f} s")


def _describe(device: Any) -> str:
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"
