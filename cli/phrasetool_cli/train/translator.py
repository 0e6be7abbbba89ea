"""What `phrasetool train --model continuous` does: a translator from a bitext, or from phrase pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool_cli.progress import ItemProgress, TerminalWatch
from phrasetool_cli.train.pair_files import PairFiles
from phrasetool_cli.train.run import Given, RunOptions, Training

if TYPE_CHECKING:
    from phrasetool.phrases import FloatArray
    from phrasetool.train.text_pairs import TextPairs
    from phrasetool.translator.model import NeuralModel
    from phrasetool.translator.settings import NeuralSettings
    from phrasetool.translator.training import NeuralReport
    from phrasetool.vocabulary import Vocabulary
_SIDES = ("source", "target")


@dataclass(frozen=True)
class NeuralInputs(PairFiles):
    """The files a translator is trained on.

    Attributes:
        texts: more target text to train word vectors on.
        vectors: word vectors of the target language; None to train them.
    """

    texts: tuple[str, ...]
    vectors: str | None

    def __post_init__(self) -> None:
        if self.vectors and self.texts:
            raise click.UsageError("--target-vectors brings word vectors; leave out --target-text")

    @property
    def all(self) -> list[str]:
        """See `PairFiles`."""
        return [*super().all, *self.texts, *filter(None, [self.vectors])]

    def record(self, escaped: bool) -> dict[str, Any]:
        """See `PairFiles`; and where the vectors of target words are from."""
        return {**super().record(escaped), "target_vectors": self.vectors or "fasttext"}


def training(given: Given) -> Training:
    """Of a translator."""
    texts, vectors = given.flags["target_text"], given.flags["target_vectors"]
    inputs = NeuralInputs(given.inputs, given.one_development, given.min_pair_count, texts, vectors)
    return Training(inputs.all, lambda run: train_translator(inputs, run, given))


def train_translator(inputs: NeuralInputs, run: RunOptions, given: Given) -> NeuralModel:
    """Train a translator and say what is done.

    Args:
        inputs: what it learns from.
        run: how.
        given: options of `NeuralSettings`, the loss and its options among its flags.

    Raises:
        click.UsageError: an option is unknown or out of range.
        PhraseToolError: an input cannot be read or makes no sense, or the model cannot be written.
    """
    import torch

    from phrasetool.nn.device import device_name
    from phrasetool.train.checks import doubting
    from phrasetool.train.data import check_pairs
    from phrasetool.translator.settings import NeuralSettings
    from phrasetool.translator.training import train_neural

    watch = TerminalWatch(run.quiet)
    doubt = doubting(watch, run.force)
    settings = given.settings(NeuralSettings, _of_losses(given), loss=given.flags["loss"])
    place = run.ready(inputs.all)
    torch.set_num_threads(run.threads)
    texts, development = inputs.read(settings.max_length, settings.seed, watch, run.quiet)
    source, target, table = _vocabularies(inputs, texts, settings, run, watch)
    pairs, held = texts.in_ids(source, target), development.in_ids(source, target)
    check_pairs(" and ".join(inputs.files), pairs, doubt)
    for which, vocabulary in enumerate((source, target)):
        if inputs.development and (fault := _foreign(which, development, set(vocabulary.words))):
            doubt(f"{inputs.development[which]}: the vocabulary {fault}")
    unknown = [vocabulary.counts[0] / max(vocabulary.counts.sum(), 1) for vocabulary in (source, target)]
    watch.say(
        f"{len(pairs):,} pairs, {len(source) - 1:,} and {len(target) - 1:,} words; {unknown[0]:.1%} and "
        f"{unknown[1]:.1%} of the text unknown; development set of {len(held):,} pairs"
    )
    watch.say(
        f"training on {device_name(place)}, preset {settings.preset}, loss {settings.loss}, n={settings.dimension}, "
        f"into {run.folder}"
    )

    def report(done: NeuralReport) -> None:
        watch.say(
            f"epoch {done.epoch}/{settings.epochs}: loss {done.loss:.4f} a word, {done.development_loss:.4f} on the "
            "development set"
        )

    with ItemProgress("train", settings.epochs * len(pairs), "pair", run.quiet) as progress:
        training = run.training_run(
            place, watch, record=inputs.record(texts.escaped), on_report=report, tick=progress.tick
        )
        trained = train_neural(pairs, held, table, settings, training)
        watch.say(f"saved {trained.signature} to {run.folder} after {progress.seconds:.0f} s")
    return trained


def _of_losses(given: Given) -> dict[str, Any]:
    """Options of any loss: which one they are of says `NeuralSettings`."""
    from phrasetool.options import registered
    from phrasetool.phrase_encoder.losses import OBJECTIVES

    found: dict[str, Any] = {}
    for name in OBJECTIVES:
        found |= given.options_of(registered(OBJECTIVES, name, "loss"))
    return found


def _vocabularies(
    inputs: NeuralInputs, texts: TextPairs, settings: NeuralSettings, run: RunOptions, watch: TerminalWatch
) -> tuple[Vocabulary, Vocabulary, FloatArray]:
    """Source and target words, and what is predicted."""
    from phrasetool.disk.writable import check_space
    from phrasetool.train.checks import doubting
    from phrasetool.train.text_pairs import source_vocabulary, target_vocabulary
    from phrasetool.translator.network import target_table
    from phrasetool.translator.training import checkpoint_bytes

    limits = settings.min_count, settings.vocabulary_size
    source, target = source_vocabulary(texts, *limits), target_vocabulary(texts, *limits)
    # Before vectors are trained, which takes minutes.
    check_space(run.folder, checkpoint_bytes(settings, len(source), len(target)))
    known = _known_vectors(inputs, texts, settings, watch)
    if inputs.vectors:
        if fault := _foreign(1, texts, known):
            doubting(watch, run.force)(f"{inputs.vectors}: {fault}")
        target = target_vocabulary(texts, *limits, known)
    try:
        table = target_table(target, known, settings.centring, settings.unknown_vector, settings.seed)
    except ValueError as error:
        raise DataError(inputs.vectors or inputs.files[-1], str(error)) from error
    return source, target, table


def _known_vectors(
    inputs: NeuralInputs, texts: TextPairs, settings: NeuralSettings, watch: TerminalWatch
) -> dict[bytes, FloatArray]:
    """Vectors of target words, of the frequent ones and of others."""
    from moses_compat.corpora.texts import unescaped_sentences
    from moses_compat.files.byte_stream import open_bytes
    from phrasetool.embeddings.fasttext import train_fasttext
    from phrasetool.embeddings.files import load_vectors

    words = texts.target_words
    if inputs.vectors:
        found = load_vectors(inputs.vectors, words, settings.dimension, open_bytes)
        known = {word: found[word] for word in words if word in found}
        watch.say(f"{len(known):,} of {len(words):,} target words have a vector in {inputs.vectors}")
        return known
    own = ([words[i] for i in text] for text in texts.targets)
    sentences = [*chain(own, unescaped_sentences(inputs.texts))]
    watch.say(f"training target vectors with fastText on {len(sentences):,} lines, n={settings.dimension}")
    return train_fasttext(sentences, settings.dimension, settings.seed)


def _foreign(which: int, texts: TextPairs, known: Collection[bytes]) -> str | None:
    """Why the known words cannot be meant for a side of some texts; None if they may be."""
    from phrasetool.phrase_encoder.start import unfit

    sides: Sequence[Any] = [(texts.sources, texts.source_words), (texts.targets, texts.target_words)]
    return unfit(_SIDES[which], sides[which], sides[1 - which], known)
