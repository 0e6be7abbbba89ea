"""`phrasetool train --model autoencoder`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError

if TYPE_CHECKING:
    from phrasetool.training.autoencoder import EpochReport


def run_autoencoder_training(
    text: str,
    folder: Path,
    seed: int,
    device: str,
    threads: int,
    resume: bool,
    quiet: bool,
    options: Mapping[str, Any],
) -> None:
    """Train a text autoencoder on monolingual text, a text a line, and save it.

    Args:
        text: the file, compressed or not; `-` for standard input.
        folder: the model folder to write.
        seed: fixes everything.
        device: `cpu`, `cuda` or `auto`.
        threads: CPU threads.
        resume: go on from the checkpoint in the folder.
        quiet: no progress.
        options: options of `AutoencoderSettings` that were given.

    Raises:
        DataError: the text cannot be read, has an empty line, or no line short enough.
        click.UsageError: an option is out of range, or there is none of that name.
    """
    import torch

    from moses_compat.corpora.texts import read_texts
    from phrasetool.training.autoencoder import train_autoencoder as train
    from phrasetool.training.autoencoder_settings import AutoencoderSettings
    from phrasetool.training.device import choose_device
    from phrasetool.training.text_vocabulary import frequent_words, in_vocabulary
    from phrasetool_cli.shared.progress import ItemProgress, TableProgress, say

    try:
        settings = AutoencoderSettings.from_options(options, seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    place = choose_device(device)
    torch.set_num_threads(threads)
    with TableProgress("read text", 0, quiet) as reading:
        everything, symbols = read_texts(text, reading)
    texts = everything.select(everything.lengths <= settings.max_length)
    if not len(texts):
        raise DataError(text, f"no line has {settings.max_length} words or fewer")
    vocabulary = frequent_words(texts, symbols.words, settings.min_count, settings.vocabulary_size)
    if not quiet:
        if left_out := len(everything) - len(texts):
            say(f"{left_out:,} lines of more than {settings.max_length} words are left out")
        unknown = vocabulary.counts[0] / len(texts.words)
        say(f"{len(texts):,} texts, {len(vocabulary) - 1:,} words, {unknown:.1%} of the text unknown")
        say(f"training on {place}, {settings.architecture} autoencoder, n={settings.shape.dimension}, into {folder}")
    with ItemProgress("train", settings.epochs * len(texts), "text", quiet) as progress:

        def report(done: EpochReport) -> None:
            if not quiet:
                say(f"epoch {done.epoch}/{settings.epochs}: cross-entropy {done.cross_entropy:.4f} a word")

        trained = train(
            in_vocabulary(texts, symbols.words, vocabulary), vocabulary, settings, folder, device=place, resume=resume,
            record={"text_file": text}, on_report=report, tick=progress.tick,
        )  # fmt: skip
        if not quiet:
            say(f"saved {trained.signature} to {folder} after {progress.seconds:.0f} s")
