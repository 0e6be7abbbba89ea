"""Train a tagger on treebanks and save it.

The network sums the vectors of a word's features; a bidirectional LSTM and a linear layer give the logits of the tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.nn.layers import SeededDropout
from phrasetool.nn.lstm import packed_states, packing
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.tagger.data import NO_TAG, TaggerExamples, Treebanks, learnt_tags, tagger_examples
from phrasetool.tagger.model import TaggerModel, tag_accuracies
from phrasetool.tagger.settings import TaggerSettings, TaggerShape
from phrasetool.training.data import ONE_IN, fingerprint, length_batches
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.training.run import StartError, TrainingRun

_SPARSE = "features_optimizer."
# Number of batches whose sentences are sorted by length together.
_POOL = 50


class TaggerNetwork(nn.Module):
    """Network that computes a logit for each tag of each word.

    Args:
        shape: dimensions of the tagger.
        seed: seed of the initial values.
        dropout: share of components that are dropped before and after the LSTM in training.

    Attributes:
        features: one vector per row, initially zero, so that features unseen in training have no effect.
    """

    def __init__(self, shape: TaggerShape, seed: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.features = nn.EmbeddingBag(
            shape.buckets, shape.word_units, mode="sum", sparse=True, padding_idx=0,
            _weight=torch.zeros(shape.buckets, shape.word_units),
        )  # fmt: skip
        self.lstm = nn.LSTM(shape.word_units, shape.units, shape.lstm_layers, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * shape.units, shape.tags)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in (*self.lstm.parameters(), *self.output.parameters()):
                bound = shape.units**-0.5
                parameter.uniform_(-bound, bound, generator=generator)
        self.dropout = SeededDropout(dropout)

    def seed_dropout(self, seed: int) -> None:
        """Set the seed of the dropout masks of the following calls."""
        self.dropout.seed(seed)

    def forward(self, rows: Tensor, lengths: Int64Array) -> Tensor:
        """Return the logits of the words of B sentences, concatenated, shape (sum of lengths, tags).

        Args:
            rows: features of the words, int64, shape (sum of lengths, F).
            lengths: number of words of each sentence, int64, shape (B,).
        """
        _, sizes, positions = packing(lengths)
        device = rows.device
        words = self.dropout(self.features(rows)).index_select(0, torch.from_numpy(positions).to(device))
        states = packed_states(self.lstm, words, sizes)
        in_order = states.index_select(0, torch.from_numpy(np.argsort(positions)).to(device))
        logits: Tensor = self.output(self.dropout(in_order))
        return logits

    def arrays(self) -> dict[str, FloatArray]:
        """Return the parameters by name, float32."""
        return {
            name: np.ascontiguousarray(value.detach().cpu().numpy(), np.float32)
            for name, value in self.named_parameters()
        }


@dataclass(frozen=True)
class TaggerReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean cross-entropy per word over the epoch.
        accuracy, lower_accuracy: shares of words of the development set that are tagged correctly, as written and
            lower-cased; means over the languages.
        updates: number of updates so far.
    """

    epoch: int
    loss: float
    accuracy: float
    lower_accuracy: float
    updates: int


class TaggerTrainer(EpochTrainer[TaggerReport]):
    """Trainer of a tagger.

    Args:
        examples: training examples.
        development: treebanks that decide which epoch is kept.
        tags: tags to learn.
        settings: hyper-parameters.
        device: device to train on; CPU by default.
    """

    def __init__(
        self, examples: TaggerExamples, development: Treebanks, tags: Sequence[str], settings: TaggerSettings,
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.examples, self.development, self.tags, self.settings = examples, development, tuple(tags), settings
        self._device = device or torch.device("cpu")
        self.network = TaggerNetwork(settings.shape(len(tags)), settings.seed, settings.dropout).to(self._device)
        parameters = dict(self.network.named_parameters())
        dense = [value for name, value in parameters.items() if not name.startswith("features.")]
        optimizers = {
            ADAM: torch.optim.Adam(dense, lr=settings.learning_rate),
            _SPARSE: torch.optim.SparseAdam(self.network.features.parameters(), lr=settings.learning_rate),
        }
        updates = -(-len(examples) // settings.batch_size)
        super().__init__(LearntParameters(parameters, optimizers), (settings.seed,), settings.epochs, updates)

    def model(self, languages: Sequence[str]) -> TaggerModel:
        """Return a model of some languages with the current parameters."""
        return TaggerModel(languages, self.tags, self.settings.shape(len(self.tags)), self.network.arrays())

    def best_model(self, languages: Sequence[str]) -> TaggerModel:
        """Return a model of some languages with the parameters of the best epoch, which become the current ones."""
        self.learnt.take_best()
        return self.model(languages)

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per word."""
        s, lengths = self.settings, self.examples.lengths
        self.network.seed_dropout(int(rng.integers(2**62)))
        total, words = 0.0, 0
        lower = rng.random(len(self.examples)) < s.lower_cased
        batches = length_batches(rng.permutation(len(lengths)), [lengths], s.batch_size, rng, _POOL)
        for number, batch in enumerate(batches):
            loss, count = self._update(batch, lower[batch], rng, number)
            total, words = total + loss * count, words + count
            tick(len(batch))
        return total / max(words, 1)

    def _update(self, batch: Int64Array, lower: Mask, rng: np.random.Generator, number: int) -> tuple[float, int]:
        """Make one update; return the mean loss per word, and the number of words with a learnt tag."""
        s, e = self.settings, self.examples
        self.learnt.scale_rates(1 - self.share(number))
        lengths = e.lengths[batch]
        positions = np.concatenate([np.arange(e.offsets[i], e.offsets[i + 1]) for i in batch.tolist()])
        words = np.where(np.repeat(lower, lengths), e.lower[positions], e.words[positions])
        rows = e.rows[words].astype(np.int64)
        rows[rng.random(len(rows)) < s.hidden_words, 0] = 0
        tags = torch.from_numpy(e.tags[positions]).to(self._device)
        count = int((e.tags[positions] != NO_TAG).sum())
        if not count:
            return 0.0, 0
        logits = self.network(torch.from_numpy(rows).to(self._device), lengths)
        loss = torch.nn.functional.cross_entropy(logits, tags, ignore_index=NO_TAG)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()), count

    def _report(self, loss: float) -> TaggerReport:
        """Measure the tagger on the development set after an epoch."""
        measured = tag_accuracies(self.model(list(self.development)), self.development).values()
        accuracy = float(np.mean([quality.accuracy for quality in measured]))
        lower_accuracy = float(np.mean([quality.lower_accuracy for quality in measured]))
        return TaggerReport(self.epoch, loss, accuracy, lower_accuracy, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return float(report["accuracy"] + report["lower_accuracy"])

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of a uniform distribution over the tags, the loss before the first update."""
        return {"train": StartError.of(float(np.log(len(self.tags))))}


def held_out_sentences(treebanks: Treebanks, seed: int) -> tuple[Treebanks, Treebanks]:
    """Split treebanks into training sentences and a development set, which has one in twenty of each language.

    Args:
        treebanks: at least two sentences per language.
        seed: seed of the random draw.

    Raises:
        ValueError: a language has fewer than two sentences.
    """
    kept, held = {}, {}
    for language, sentences in treebanks.items():
        if len(sentences) < 2:
            raise ValueError(f"{len(sentences)} sentence of {language}, expected two at least, to hold one out")
        order = np.random.default_rng([seed, len(sentences)]).permutation(len(sentences))
        count = max(1, len(sentences) // ONE_IN)
        held[language] = [sentences[i] for i in sorted(order[:count].tolist())]
        kept[language] = [sentences[i] for i in sorted(order[count:].tolist())]
    return kept, held


def train_tagger(
    treebanks: Treebanks, development: Treebanks, settings: TaggerSettings, run: TrainingRun
) -> TaggerModel:
    """Train a tagger and save it.

    Args:
        treebanks: training sentences by language.
        development: sentences of some of these languages, which decide which epoch is kept.
        settings: hyper-parameters.
        run: model folder, device and listeners.

    Raises:
        ModelError: the folder holds a finished model or an unfinished training; the checkpoint is missing, damaged, or
            of other treebanks or settings.
        DivergedError: the learning rate is too large; the last good checkpoint is kept.
        PhraseToolError: the folder cannot be written, or the disk has too little space.
    """
    run.check()
    # The old and the new checkpoint, float32: the table of features, two moments of Adam, and the best table.
    run.check_space(2 * 4 * 4 * settings.buckets * settings.word_units)
    tags = learnt_tags(treebanks, settings.min_joint)
    examples = tagger_examples(treebanks, tags, settings.buckets)
    identity = {"treebanks": [_fingerprint(treebanks), _fingerprint(development)], "settings": settings.as_dict()}

    def start() -> TaggerTrainer:
        return TaggerTrainer(examples, development, tags, settings, run.device)

    trainer = train_epochs(run, identity, start)
    model = trainer.best_model(list(treebanks))
    model.training = {
        **settings.as_dict(),
        "sentences": {language: len(sentences) for language, sentences in treebanks.items()},
        **run.record,
        "epochs_done": trainer.epoch,
        "best_epoch": trainer.best["epoch"] if trainer.best else 0,
        "development": {
            language: {name: value for name, value in asdict(quality).items() if name != "by_tag"}
            for language, quality in tag_accuracies(model, development).items()
        },
    }
    run.save(model)
    return model


def _fingerprint(treebanks: Treebanks) -> str:
    """Return hexadecimal digits that differ when a sentence differs."""
    return fingerprint(
        repr((language, [(item.words, item.tags, item.tokens) for item in sentences])).encode()
        for language, sentences in treebanks.items()
    )
