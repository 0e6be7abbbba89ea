"""Train a text autoencoder.

The texts of a batch have equal or similar lengths, because nothing is padded; the composition and the order of batches
are drawn for every epoch.  On a CPU, a seed fixes the weights for a given number of threads (with another number, a
matrix product may add up in a different order); on a GPU, only as far as torch is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.autoencoder.network import Autoencoder
from phrasetool.autoencoder.settings import AutoencoderSettings
from phrasetool.models.fit import FEWEST
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.training.data import fingerprint, frequent_words, in_vocabulary, length_batches, text_parts
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.training.run import StartError, TrainingRun, guessing
from phrasetool.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainingTexts:
    """Training texts of an autoencoder.

    Attributes:
        texts: texts as ids of the vocabulary.
        vocabulary: the frequent words.
        left_out: number of texts that were too long.
        unknown: share of the running words that are not in the vocabulary.
    """

    texts: Phrases
    vocabulary: Vocabulary
    left_out: int
    unknown: float


def training_texts(texts: Phrases, words: Sequence[bytes], settings: AutoencoderSettings) -> TrainingTexts:
    """Select the texts that are short enough, and build their vocabulary.

    Args:
        texts: texts as ids of `words`, with at least one word each.
        words: distinct words, unescaped.
        settings: maximum length of a text, and limits of the vocabulary.

    Raises:
        ValueError: no text is short enough.
    """
    short = texts.select(texts.lengths <= settings.max_length)
    if not len(short):
        raise ValueError(f"no line has {settings.max_length} words or fewer")
    vocabulary = frequent_words(short, words, settings.min_count, settings.vocabulary_size)
    left_out, unknown = len(texts) - len(short), vocabulary.counts[0] / len(short.words)
    return TrainingTexts(in_vocabulary(short, words, vocabulary), vocabulary, left_out, unknown)


# Number of texts on which the trained network is compared with chance.
_SAMPLE = 1000


@dataclass(frozen=True)
class EpochReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        cross_entropy: mean per word (or end) over the epoch, in nats, with dropout.
        updates: number of updates so far.
    """

    epoch: int
    cross_entropy: float
    updates: int


class AutoencoderTrainer(EpochTrainer[EpochReport]):
    """Trains a text autoencoder.

    Args:
        texts: texts as ids of the vocabulary, with at least one word each and not longer than the settings allow.
        vocabulary_size: number of words of the vocabulary.
        settings: hyper-parameters.
        device: device to train on; CPU by default.
    """

    def __init__(
        self, texts: Phrases, vocabulary_size: int, settings: AutoencoderSettings, device: torch.device | None = None
    ) -> None:
        self.texts = texts
        self.settings = settings
        arrays = settings.shape.initial(vocabulary_size, np.random.default_rng(settings.seed))
        module = Autoencoder(settings.shape, arrays, settings.dropout, settings.precision)
        self.module = module.to(device or torch.device("cpu"))
        adam = torch.optim.Adam(self.module.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.module.named_parameters()), {ADAM: adam})
        super().__init__(learnt, (settings.seed,), settings.epochs, -(-len(texts) // settings.batch_size))
        self._vocabulary_size = vocabulary_size + 1

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean cross-entropy per word."""
        self.module.train()
        self.module.seed_dropout(int(rng.integers(2**63)))
        total = torch.zeros((), dtype=torch.float64, device=self.module.words.device)
        order = rng.permutation(len(self.texts))
        for number, batch in enumerate(length_batches(order, [self.texts.lengths], self.settings.batch_size, rng)):
            total += self._update(batch, number)
            tick(len(batch))
        return float(total) / (len(self.texts.words) + len(self.texts))

    def _update(self, batch: Int64Array, number: int) -> Tensor:
        """Make one update; return the sum of the cross-entropies."""
        self.learnt.scale_rates(1 - self.share(number))
        loss, count = self.module.loss(self.texts.select(batch))
        self.learnt.step(loss / count, self.settings.clip)
        return loss.detach()

    def _report(self, loss: float) -> EpochReport:
        return EpochReport(self.epoch, loss, self.updates_done)

    def start_errors(self) -> dict[str, StartError]:
        """Return the cross-entropy of a uniform distribution over the words, close to that before the first update."""
        return {"train": StartError.of(math.log(self._vocabulary_size))}

    def chance_level_reason(self) -> str | None:
        """Return the reason why the network is not better than chance; None if it is better, or with too few words.

        The cross-entropy of a sample of the texts is measured without dropout: after a single epoch, the mean over that
        epoch describes its beginning rather than its end.
        """
        texts = self.texts.select(np.unique(np.linspace(0, len(self.texts) - 1, _SAMPLE).astype(np.int64)))
        self.module.eval()
        total, words = 0.0, 0
        with torch.no_grad():
            rng = np.random.default_rng(0)
            for batch in length_batches(rng.permutation(len(texts)), [texts.lengths], self.settings.batch_size, rng):
                loss, count = self.module.loss(texts.select(batch))
                total, words = total + float(loss), words + count
        error, chance = total / words, math.log(self._vocabulary_size)
        if words < FEWEST or error < chance:
            return None
        return f"the cross-entropy per word is {error:.2f}, that of guessing {chance:.2f}"


def train_autoencoder(
    texts: Phrases,
    vocabulary: Vocabulary,
    settings: AutoencoderSettings,
    run: TrainingRun,
) -> AutoencoderModel:
    """Train a text autoencoder and save it.

    Args:
        texts: texts as ids of the vocabulary.
        vocabulary: vocabulary of the texts.
        settings: hyper-parameters.
        run: model folder, device and listeners.

    Raises:
        ModelError: the folder holds a finished model or an unfinished training; the checkpoint is missing, damaged, or
            belongs to other texts or settings.
        DivergedError: the learning rate is too large (the last good checkpoint is kept), or the model is not better
            than chance (its checkpoint is kept).
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: no texts, or a text has no words or more than the settings allow.
    """
    lengths = texts.lengths
    if not len(texts) or lengths.min() < 1 or lengths.max() > settings.max_length:
        raise ValueError(f"expected texts of 1 to {settings.max_length} words, at least one")
    run.check()
    # Space for a checkpoint with both moments of Adam, and for the one that replaces it.
    run.check_space(2 * 3 * 4 * sum(map(math.prod, settings.shape.shapes(len(vocabulary)).values())))
    identity = {"texts": fingerprint(text_parts([texts], [vocabulary.words])), "settings": settings.as_dict()}

    def start() -> AutoencoderTrainer:
        return AutoencoderTrainer(texts, len(vocabulary), settings, run.device)

    trainer = train_epochs(run, identity, start)
    if reason := trainer.chance_level_reason():
        run.refuse(guessing(run.folder, reason, settings.learning_rate))
    training = {**settings.as_dict(), "texts": len(texts), "epochs_done": trainer.epoch, **run.record}
    model = AutoencoderModel(vocabulary, settings.shape, trainer.module.numpy(), training)
    run.save(model)
    return model
