"""`phrasetool train`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.options import available_processors, default_model

if TYPE_CHECKING:
    from phrasetool.encoders.rae import RaeParameters
    from phrasetool.training.pairs import PhrasePairs
    from phrasetool.training.settings import TrainingSettings
    from phrasetool.vocabulary import Vocabulary

_HYPER_PARAMETERS: list[tuple[str, Any, str]] = [
    ("--dimension", int, "n, the size of every vector.  [50]"),
    (
        "--iterations",
        int,
        "Passes over the pairs (at most, with a constant step size: then a local minimum ends it).  [25]",
    ),
    ("--pretrain-iterations", int, "Passes that train each auto-encoder alone first.  [0; max-margin 5]"),
    ("--alpha", float, "Weight of the reconstruction error against the semantic one.  [0.1; max-margin 0.15]"),
    ("--learning-rate", float, "Step size.  [0.006; max-margin 0.01]"),
    ("--schedule", str, "constant, or linear: the step size falls to 0.  [linear; max-margin constant]"),
    ("--batch-size", int, "Pairs per update.  [512, fewer for small sets; max-margin 64]"),
    ("--optimizer", str, "adam or sgd.  [adam; max-margin sgd]"),
    ("--lambda-words", float, "L2 weight of the word vectors.  [0; max-margin 0.01]"),
    ("--lambda-rec", float, "L2 weight of W1, W2 and their biases.  [0; max-margin 0.001]"),
    ("--lambda-sem", float, "L2 weight of the transformations.  [0; max-margin 0.001]"),
    ("--margin", float, "Margin of max-margin.  [1]"),
    ("--temperature", float, "Temperature of in-batch.  [0.1]"),
    ("--smoothing", float, "Label smoothing of in-batch.  [0.25]"),
    ("--unknown-rate", float, "Chance to read a word seen once as unknown, which trains <unk>.  [0.1]"),
    ("--vector-scale", float, "Root mean square of a word-vector component at the start.  [0.3]"),
    ("--start", str, "W1, W2, Wl at first: averaging (a parent is a mean) or normal.  [averaging; max-margin normal]"),
]


def _hyper_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    for flag, kind, text in reversed(_HYPER_PARAMETERS):
        function = click.option(flag, type=kind, default=None, metavar="X", help=text)(function)
    return function


_EXAMPLE = """\b
Example:
  phrasetool train pairs.gz
  phrasetool train pairs.gz --source-text mono.de.gz --target-text mono.en.gz -o model
  phrasetool train demo-output/pairs.gz -o demo-output/model2 --iterations 60
"""


@click.command(short_help="Train a model on phrase pairs.", epilog=_EXAMPLE)
@click.argument("pairs")
@click.option("-o", "--output", "folder", metavar="FOLDER",
              help="Model folder to write.  [default: $PHRASETOOL_MODEL, else ./phrasetool-model]")  # fmt: skip
@click.option("--model", type=click.Choice(["brae"]), default="brae", show_default=True, help="What to train.")
@click.option("--encoder", type=click.Choice(["rae"]), default="rae", show_default=True,
              help="How a phrase becomes a vector.")  # fmt: skip
@click.option("--loss", type=click.Choice(["in-batch", "max-margin"]), default="in-batch", show_default=True,
              help="in-batch: tell the partner from others in the batch.  max-margin: the paper's.")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Fixes everything.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda or auto.")
@click.option("--threads", type=click.IntRange(1), default=available_processors, metavar="N",
              help="CPU threads; two are used at most.  [default: all processors]")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in the model folder.")
@click.option("--max-length", type=click.IntRange(1), default=7, show_default=True,
              help="Leave out pairs with more words on a side.")  # fmt: skip
@click.option("--min-pair-count", type=float, default=0, metavar="C",
              help="Leave out pairs with a smaller count (of a table: the joint count).")  # fmt: skip
@click.option("--source-text", multiple=True, metavar="FILE", help="Monolingual text to train word vectors on.")
@click.option("--target-text", multiple=True, metavar="FILE", help="The same for the target language.")
@click.option("--source-vectors", metavar="FILE",
              help="Word vectors to start from: word2vec, GloVe or fastText, text or binary.")  # fmt: skip
@click.option("--target-vectors", metavar="FILE", help="The same for the target language.")
@click.option("--random-vectors", is_flag=True, help="Start from random word vectors instead of word2vec.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@_hyper_parameters
def command(
    pairs: str,
    folder: str | None,
    model: str,
    encoder: str,
    loss: str,
    seed: int,
    device: str,
    threads: int,
    resume: bool,
    max_length: int,
    min_pair_count: float,
    source_text: tuple[str, ...],
    target_text: tuple[str, ...],
    source_vectors: str | None,
    target_vectors: str | None,
    random_vectors: bool,
    quiet: bool,
    **hyper_parameters: Any,
) -> None:
    """Learn what phrases mean from PAIRS.

    PAIRS has lines `source ||| target[ ||| count]` (pairs used in forced decoding are best), or is a phrase table.
    Word vectors start from word2vec, trained on --source-text and --target-text or else on the pairs themselves.
    """
    import torch

    from phrasetool.training.run import train_model
    from phrasetool.training.settings import batch_size_for
    from phrasetool.training.trainer import choose_device
    from phrasetool_cli.progress import TrainingProgress, say

    settings = _settings(loss, {"seed": seed, **hyper_parameters})
    place = choose_device(device)
    # Both languages are trained side by side; within a language one thread is fastest at these sizes.
    torch.set_num_threads(1 if place.type == "cpu" else threads)
    path = Path(folder or default_model())
    data = _read(pairs, max_length, min_pair_count, quiet)
    if loss == "in-batch" and hyper_parameters["batch_size"] is None:
        settings = replace(settings, batch_size=batch_size_for(len(data)))
    if not quiet:
        say(f"{len(data):,} pairs, {len(data.source_vocabulary):,} and {len(data.target_vocabulary):,} words")
        say(f"training on {_describe(place)}, loss {loss}, n={settings.dimension}, into {path}")

    def start() -> tuple[RaeParameters, RaeParameters]:
        texts, files = (source_text, target_text), (source_vectors, target_vectors)
        return _initial(data, settings, texts, files, random_vectors, quiet)

    began = time.monotonic()
    with TrainingProgress(len(data), settings.pretrain_iterations, settings.iterations, quiet) as progress:
        trained = train_model(
            data, settings, start, path, device=place, resume=resume, record={"pairs_file": pairs},
            on_report=progress.report, tick=progress.tick,
        )  # fmt: skip
    if not quiet:
        say(f"saved {trained.signature} to {path} after {time.monotonic() - began:.0f} s")


def _settings(loss: str, changes: dict[str, Any]) -> TrainingSettings:
    from phrasetool.training.settings import TrainingSettings

    try:
        return TrainingSettings.for_loss(loss, **changes)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _read(path: str, max_length: int, min_count: float, quiet: bool) -> PhrasePairs:
    from moses_compat.pairs import read_pairs
    from moses_compat.streams import Input
    from phrasetool_cli.progress import TableProgress

    with Input(path) as source, TableProgress("read pairs", source.size(), quiet) as progress:
        return read_pairs(source, max_length=max_length, min_count=min_count, progress=progress)


def _describe(device: Any) -> str:
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


def _initial(
    data: PhrasePairs,
    settings: TrainingSettings,
    texts: tuple[tuple[str, ...], tuple[str, ...]],
    files: tuple[str | None, str | None],
    random_vectors: bool,
    quiet: bool,
) -> tuple[RaeParameters, RaeParameters]:
    """Start parameters of both languages."""
    import numpy as np

    from phrasetool.embeddings.initial import initial_vectors
    from phrasetool.training.settings import initial_parameters
    from phrasetool_cli.progress import say

    made = []
    sides = ((data.sources, data.source_vocabulary), (data.targets, data.target_vocabulary))
    for which, (phrases, vocabulary) in enumerate(sides):
        rng = np.random.default_rng([settings.seed, which])
        known = {}
        if not random_vectors:
            known = _known_vectors(phrases, vocabulary, settings, texts[which], files[which])
        if not quiet and known:
            share = sum(word in known for word in vocabulary.words) / max(len(vocabulary) - 1, 1)
            say(f"{('source', 'target')[which]} word vectors: {share:.1%} of the words start from known vectors")
        vectors = initial_vectors(vocabulary, known, settings.dimension, settings.vector_scale, rng)
        made.append(initial_parameters(vectors, settings.start, rng))
    return made[0], made[1]


def _known_vectors(
    phrases: Any, vocabulary: Vocabulary, settings: TrainingSettings, texts: tuple[str, ...], file: str | None
) -> dict[bytes, Any]:
    from phrasetool.embeddings.files import load_vectors
    from phrasetool.embeddings.word2vec import phrase_sentences, train_word2vec

    if file:
        return load_vectors(file, vocabulary.words, settings.dimension)
    sentences = _sentences(texts) if texts else phrase_sentences(phrases, vocabulary)
    return train_word2vec(sentences, settings.dimension, settings.seed)


def _sentences(paths: tuple[str, ...]) -> Iterator[list[bytes]]:
    """The lines of text files as words, Moses' escapes undone."""
    from moses_compat.streams import Input
    from phrasetool.vocabulary import unescape

    for path in paths:
        with Input(path) as source:
            for line in source.read_all().split(b"\n"):
                yield (unescape(line) if b"&" in line else line).split()
