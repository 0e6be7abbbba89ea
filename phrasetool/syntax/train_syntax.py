"""From bitexts and a tagger to a saved syntactic encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.syntax.data import (
    NamedBitext,
    Sentences,
    SyntaxExamples,
    directed_examples,
    held_out_pairs,
    numbered,
    piece_numbers,
    short_pairs,
    tag_numbers,
)
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.pieces import PieceTable, learn_pieces
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.syntax.training import SyntaxTrainer
from phrasetool.tagger.model import TaggerModel
from phrasetool.train.data import fingerprint
from phrasetool.train.loop import train_epochs
from phrasetool.train.run import TrainingRun
from phrasetool.watch import NOBODY, Watch


@dataclass(frozen=True)
class _Fresh:
    """A network before training.

    Attributes:
        languages, targets, pieces, shape, arrays: see `SyntaxModel`.
        known: pieces that were seen before.
    """

    languages: tuple[str, ...]
    targets: tuple[str, ...]
    pieces: PieceTable
    known: Mask
    shape: SyntaxShape
    arrays: dict[str, FloatArray]


def train_syntax(
    bitexts: Sequence[NamedBitext],
    tagger: TaggerModel,
    settings: SyntaxSettings,
    run: TrainingRun,
    *,
    start: SyntaxModel | None = None,
    watch: Watch = NOBODY,
) -> SyntaxModel:
    """Train a syntactic encoder and save it.

    Args:
        bitexts: what to learn from.
        tagger: knows one of the languages of each bitext at least.
        settings: how; with `start`, its sizes are that model's.
        run: where and how; who watches follows it, not its `tick`.
        start: a model to go on from; it may learn new languages.
        watch: is told what is done, and follows it.

    Raises:
        ModelError: there is a finished model or an unfinished training; the checkpoint is missing, damaged, or of
            other bitexts or settings.
        DivergedError: the learning rate is too large; the last good checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: the bitexts have nothing to learn from, or nothing to hold out.
    """
    run.check()
    short = [short_pairs(one, settings.min_length, settings.max_length) for one in bitexts]
    if left_out := sum(len(one.pairs) for one in bitexts) - sum(len(one.pairs) for one in short):
        lengths = f"{settings.min_length} to {settings.max_length}"
        watch.say(f"{left_out:,} pairs with a side of other than {lengths} words are left out")
    sentences, pairs = numbered(short)
    kept, held = held_out_pairs(pairs, settings.seed)
    made = _fresh(sentences, tagger, settings, start)
    # Parameters, the best so far, two moments of Adam, and the checkpoint that takes the place of another.
    run.check_space(2 * 4 * sum(4 * array.size for array in made.arrays.values()))
    examples, development = _examples(sentences, tagger, settings, made, [one.languages for one in short], (kept, held))
    watch.say(
        f"{len(examples):,} examples, {len(development):,} more as the development set; {len(made.pieces):,} pieces"
    )
    identity = {"bitexts": [_fingerprint(sentences, pairs), tagger.identity, start.identity if start else None],
                "settings": settings.as_dict()}  # fmt: skip

    def begin() -> SyntaxTrainer:
        return SyntaxTrainer(examples, development, made.shape, made.arrays, settings, run.device)

    with watch.items("train", settings.epochs * len(examples), "example") as tick:
        trainer = train_epochs(replace(run, tick=tick), identity, begin)
    training = {
        **settings.as_dict(),
        "tagger": tagger.signature,
        "start": start.signature if start else None,
        "pairs": {"-".join(one.languages): len(rows) for one, rows in zip(short, kept, strict=True)},
        "examples": len(examples),
        **run.record,
        "epochs_done": trainer.epoch,
        "best": trainer.best,
    }
    known = made.known.copy()
    known[np.unique(examples.texts.select(np.unique(examples.sources)).words)] = True
    network = trainer.kept()
    model = SyntaxModel(made.languages, made.targets, made.pieces, known, made.shape, network.arrays(), training)
    run.save(model)
    return model


def _fresh(sentences: Sentences, tagger: TaggerModel, settings: SyntaxSettings, start: SyntaxModel | None) -> _Fresh:
    """A new network, or that of a model with more languages."""
    languages = tuple(sentences.numbers)
    targets = tuple(language for language in languages if language in tagger.languages)
    if not targets:
        raise ValueError(f"the tagger knows none of the languages {', '.join(languages)}")
    if start is None:
        pieces = PieceTable(learn_pieces(sentences.word_counts(), settings.pieces))
        shape = settings.shape(len(pieces), len(targets))
        known = np.zeros(len(pieces), np.bool_)
        return _Fresh(languages, targets, pieces, known, shape, shape.initial_arrays(settings.seed))
    new = tuple(language for language in targets if language not in start.targets)
    shape = SyntaxShape(**{**vars(start.shape), "languages": len(start.targets) + len(new)})
    arrays = dict(start.arrays)
    drawn = np.random.default_rng(settings.seed).standard_normal((len(new), shape.language_units), np.float32)
    arrays["languages.weight"] = np.concatenate([arrays["languages.weight"], drawn])
    known_languages = tuple(dict.fromkeys((*start.languages, *languages)))
    return _Fresh(known_languages, (*start.targets, *new), start.pieces, start.known, shape, arrays)


def _examples(
    sentences: Sentences, tagger: TaggerModel, settings: SyntaxSettings, made: _Fresh,
    languages: Sequence[tuple[str, str]], pairs: tuple[list[Int64Array], list[Int64Array]],
) -> tuple[SyntaxExamples, SyntaxExamples]:  # fmt: skip
    """What to learn from, and the development set."""
    texts, tags = piece_numbers(sentences, made.pieces), tag_numbers(sentences, tagger)
    numbers = {language: number for number, language in enumerate(made.targets)}
    longest = made.shape.longest
    examples = directed_examples(texts, tags, pairs[0], numbers, languages, longest, settings.own_language)
    development = directed_examples(texts, tags, pairs[1], numbers, languages, longest)
    if not len(examples) or not len(development):
        raise ValueError("there is nothing to learn from: all sentences have too many pieces")
    return examples, development


def _fingerprint(sentences: Sentences, pairs: Sequence[Int64Array]) -> str:
    """Hexadecimal digits that differ when a sentence or a pair differs."""
    texts = (language.encode() + b"\n" + b"\n".join(known) + b"\0" for language, known in sentences.numbers.items())
    return fingerprint((*texts, *pairs))
