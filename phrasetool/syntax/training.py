"""Train a syntactic encoder on bitexts and a tagger, and save it.

On a CPU, training is reproducible for a given seed and number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from phrasetool.nn.device import autocast
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.syntax.data import (
    NamedBitext,
    PieceTable,
    Sentences,
    SyntaxExamples,
    directed_examples,
    held_out_pairs,
    learn_pieces,
    numbered,
    piece_numbers,
    short_pairs,
    tag_numbers,
)
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.settings import END, SIZES, TAGS, SyntaxSettings, SyntaxShape
from phrasetool.tagger.model import TaggerModel
from phrasetool.training.data import fingerprint, length_batches
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, finished_epochs, train_epochs
from phrasetool.training.run import StartError, TrainingRun
from phrasetool.watch import SILENT, Watch

# Number of batches whose examples are sorted by length together.
_POOL = 500
# Target after the end of a sequence, which is excluded from the loss.
_NO_TARGET = -100


@dataclass(frozen=True)
class SyntaxReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean cross-entropy per tag, including the end, over the epoch.
        development_loss: the same for the development set.
        development_accuracy: share of its tags that are predicted correctly, given the previous tags.
        updates: number of updates so far.
    """

    epoch: int
    loss: float
    development_loss: float
    development_accuracy: float
    updates: int


class SyntaxTrainer(EpochTrainer[SyntaxReport]):
    """Trainer of an encoder with its decoder.

    Args:
        examples: training examples.
        development: examples that decide which epoch is kept.
        shape: dimensions of encoder and decoder.
        arrays: initial values.
        settings: hyper-parameters.
        device: device to train on; CPU by default.
    """

    def __init__(
        self, examples: SyntaxExamples, development: SyntaxExamples, shape: SyntaxShape,
        arrays: Mapping[str, FloatArray], settings: SyntaxSettings, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.examples, self.development, self.settings = examples, development, settings
        self._device = device or torch.device("cpu")
        self.network = SyntaxNetwork(shape, arrays, settings.dropout, settings.decoder_dropout).to(self._device)
        adam = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.network.named_parameters()), {ADAM: adam})
        updates = -(-len(examples) // settings.batch_size)
        super().__init__(learnt, (settings.seed,), settings.epochs, updates, settings.patience)

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per tag."""
        self.network.train()
        self.network.seed_dropout(int(rng.integers(2**62)))
        total, tags = 0.0, 0
        for number, batch in enumerate(batches_by_length(self.examples, self.settings.batch_size, rng)):
            loss, count = self._update(batch, number)
            total, tags = total + loss * count, tags + count
            tick(len(batch))
        return total / tags

    def best_arrays(self) -> dict[str, FloatArray]:
        """Return the parameters of the best epoch, which become the current ones."""
        self.learnt.take_best()
        return self.network.arrays()

    def _update(self, batch: Int64Array, number: int) -> tuple[float, int]:
        """Make one update; return the mean loss per tag, and the number of tags."""
        s = self.settings
        if s.schedule == "linear":
            self.learnt.scale_rates(1 - self.share(number))
        with autocast(s.precision, self._device):
            logits, targets = self._logits(self.examples, batch)
        loss = cross_entropy(logits.float(), targets, ignore_index=_NO_TARGET)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()), int((targets != _NO_TARGET).sum())

    def _logits(self, examples: SyntaxExamples, batch: Int64Array) -> tuple[Tensor, Tensor]:
        """Return the logits of the tags of a batch, padded, shape (N, 18), and their targets, shape (N,)."""
        # A source sentence with several target sentences is encoded once.
        sources, source_rows = np.unique(examples.sources[batch], return_inverse=True)
        texts, tags = examples.texts.select(sources), examples.tags.select(examples.targets[batch])
        padded_texts = self._to_device(texts.padded(int(texts.lengths.max())))
        padded_tags = self._to_device(tags.padded(int(tags.lengths.max()), END))
        rows = self._to_device(source_rows)
        encoded = self.network.encode(padded_texts, torch.from_numpy(texts.lengths))
        vectors, last = (part.index_select(0, rows) for part in encoded)
        logits = self.network.decode(vectors, last, self._to_device(examples.languages[batch]), padded_tags)
        targets = torch.cat([padded_tags, torch.full_like(padded_tags[:, :1], END)], 1)
        padding = np.arange(targets.shape[1])[None] > tags.lengths[:, None]
        targets[self._to_device(padding, np.bool_)] = _NO_TARGET
        return logits.reshape(-1, TAGS + 1), targets.reshape(-1)

    def _to_device(self, array: Any, dtype: Any = np.int64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype)).to(self._device)

    @torch.no_grad()
    def _report(self, loss: float) -> SyntaxReport:
        """Measure the network on the development set after an epoch."""
        self.network.eval()
        examples = self.development
        order = np.lexsort((examples.sources, examples.texts.lengths[examples.sources]))
        total, right, tags = 0.0, 0, 0
        for first in range(0, len(order), self.settings.batch_size):
            logits, targets = self._logits(examples, order[first : first + self.settings.batch_size])
            total += float(cross_entropy(logits, targets, ignore_index=_NO_TARGET, reduction="sum"))
            right += int((logits.argmax(1) == targets).sum())
            tags += int((targets != _NO_TARGET).sum())
        return SyntaxReport(self.epoch, loss, total / tags, right / tags, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of a uniform distribution over the tags, the loss before the first update."""
        return {"train": StartError.of(float(np.log(TAGS + 1)))}


def batches_by_length(examples: SyntaxExamples, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """Divide examples into batches of similar length, in random order; examples of one source sentence stay together.

    Args:
        examples: the examples.
        size: examples per batch.
        rng: random number generator.
    """
    sources, numbers = np.unique(examples.sources, return_inverse=True)
    order = np.argsort(rng.permutation(len(sources))[numbers], kind="stable")
    return length_batches(order, [examples.texts.lengths[examples.sources]], size, rng, _POOL)


@dataclass(frozen=True)
class _InitialNetwork:
    """A network before training.

    Attributes:
        languages, targets, pieces, shape, arrays: see `SyntaxModel`.
        known: pieces seen in the training of the model that training starts from, bool, shape (pieces,).
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
    watch: Watch = SILENT,
) -> SyntaxModel:
    """Train a syntactic encoder and save it.

    Args:
        bitexts: training data.
        tagger: tagger of at least one of the languages of each bitext.
        settings: hyper-parameters; with `start`, the sizes are those of that model.
        run: model folder, device and listeners; progress is reported to `watch` instead of `run.tick`.
        start: model to start from; it may learn new languages.
        watch: progress reporter.

    Raises:
        ModelError: the folder holds a finished model or an unfinished training; the checkpoint is missing, damaged, or
            of other bitexts or settings.
        DivergedError: the learning rate is too large; the last good checkpoint is kept.
        PhraseToolError: the folder cannot be written, or the disk has too little space.
        ValueError: the bitexts have nothing to learn from, or nothing to hold out.
    """
    run.check()
    short = [short_pairs(bitext, settings.min_length, settings.max_length) for bitext in bitexts]
    if left_out := sum(len(bitext.pairs) for bitext in bitexts) - sum(len(bitext.pairs) for bitext in short):
        lengths = f"{settings.min_length} to {settings.max_length}"
        watch.say(f"{left_out:,} pairs with a side outside {lengths} words are left out")
    sentences, pairs = numbered(short)
    kept, held = held_out_pairs(pairs, settings.seed)
    initial = _initial_network(sentences, tagger, settings, start)
    # The old and the new checkpoint, float32: parameters, two moments of Adam, and the best parameters.
    run.check_space(2 * 4 * sum(4 * array.size for array in initial.arrays.values()))
    languages = [bitext.languages for bitext in short]
    examples, development = _examples(sentences, tagger, settings, initial, languages, (kept, held), watch)
    watch.say(
        f"{len(examples):,} examples, {len(development):,} more as the development set; {len(initial.pieces):,} pieces"
    )
    identity = {"bitexts": [_fingerprint(sentences, pairs), tagger.identity, start.identity if start else None],
                "settings": settings.as_dict()}  # fmt: skip

    def begin() -> SyntaxTrainer:
        return SyntaxTrainer(examples, development, initial.shape, initial.arrays, settings, run.device)

    finished = finished_epochs(run.folder, run.resume) * len(examples)
    with watch.items("train", settings.epochs * len(examples), "example", finished) as tick:
        trainer = train_epochs(replace(run, tick=tick), identity, begin)
    training = {
        **settings.as_dict(),
        # Those of the settings are of a new model.
        **({name: getattr(start.shape, name) for name in SIZES} if start else {}),
        "tagger": tagger.signature,
        "start": start.signature if start else None,
        "pairs": {"-".join(bitext.languages): len(rows) for bitext, rows in zip(short, kept, strict=True)},
        "examples": len(examples),
        **run.record,
        "epochs_done": trainer.epoch,
        "best": trainer.best,
    }
    known = initial.known.copy()
    known[np.unique(examples.texts.select(np.unique(examples.sources)).words)] = True
    model = SyntaxModel(
        initial.languages, initial.targets, initial.pieces, known, initial.shape, trainer.best_arrays(), training
    )
    run.save(model)
    return model


def _initial_network(
    sentences: Sentences, tagger: TaggerModel, settings: SyntaxSettings, start: SyntaxModel | None
) -> _InitialNetwork:
    """Return a randomly initialised network, or that of `start` with new languages added."""
    languages = tuple(sentences.numbers)
    targets = tuple(language for language in languages if language in tagger.languages)
    if not targets:
        raise ValueError(f"the tagger knows none of the languages {', '.join(languages)}")
    if start is None:
        pieces = PieceTable(learn_pieces(sentences.word_counts(), settings.pieces))
        shape = settings.shape(len(pieces), len(targets))
        known = np.zeros(len(pieces), np.bool_)
        return _InitialNetwork(languages, targets, pieces, known, shape, shape.initial_arrays(settings.seed))
    new = tuple(language for language in targets if language not in start.targets)
    shape = SyntaxShape(**{**vars(start.shape), "languages": len(start.targets) + len(new)})
    arrays = dict(start.arrays)
    drawn = np.random.default_rng(settings.seed).standard_normal((len(new), shape.language_units), np.float32)
    arrays["languages.weight"] = np.concatenate([arrays["languages.weight"], drawn])
    known_languages = tuple(dict.fromkeys((*start.languages, *languages)))
    return _InitialNetwork(known_languages, (*start.targets, *new), start.pieces, start.known, shape, arrays)


def _examples(
    sentences: Sentences, tagger: TaggerModel, settings: SyntaxSettings, initial: _InitialNetwork,
    languages: Sequence[tuple[str, str]], pairs: tuple[list[Int64Array], list[Int64Array]], watch: Watch,
) -> tuple[SyntaxExamples, SyntaxExamples]:  # fmt: skip
    """Return the training examples and the development set."""
    texts, tags = piece_numbers(sentences, initial.pieces), tag_numbers(sentences, tagger)
    numbers = {language: number for number, language in enumerate(initial.targets)}
    longest = initial.shape.longest
    if over_long := int((texts.lengths > longest).sum()):
        watch.say(
            f"{over_long:,} sentences of more than {longest:,} pieces, the most that the encoder reads, are left out"
        )
    examples = directed_examples(texts, tags, pairs[0], numbers, languages, longest, settings.own_language)
    development = directed_examples(texts, tags, pairs[1], numbers, languages, longest)
    if not len(examples) or not len(development):
        raise ValueError("there is nothing to learn from: all sentences have too many pieces")
    return examples, development


def _fingerprint(sentences: Sentences, pairs: Sequence[Int64Array]) -> str:
    """Return hexadecimal digits that differ when a sentence or a pair differs."""
    texts = (language.encode() + b"\n" + b"\n".join(known) + b"\0" for language, known in sentences.numbers.items())
    return fingerprint((*texts, *pairs))
