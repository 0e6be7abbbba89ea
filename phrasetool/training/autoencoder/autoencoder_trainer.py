"""Train a text autoencoder.

A batch has texts of one length or of a few that are close, since nothing is padded; which texts meet in a batch and in
what order batches come is drawn anew for every epoch.  On a CPU a seed fixes the weights for a given number of threads
(a matrix product may add up in another order with another number); on a GPU it does so as far as torch does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from phrasetool.encoders.autoencoders.autoencoder import Autoencoder
from phrasetool.models.autoencoder import AutoencoderModel
from phrasetool.models.fit import FEWEST
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.train.checks import StartError, guessing
from phrasetool.train.data import fingerprint, length_batches, text_parts
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.train.run import TrainingRun
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.vocabulary import Vocabulary

# Texts that tell how well all are known.
_SAMPLE = 1000


@dataclass(frozen=True)
class EpochReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        cross_entropy: mean of a word (or end) over the epoch, in nats, with dropout.
        updates: done so far.
    """

    epoch: int
    cross_entropy: float
    updates: int


class AutoencoderTrainer(EpochTrainer[EpochReport]):
    """Trains a text autoencoder.

    Args:
        texts: what to learn from, in ids of the vocabulary; none without words or longer than the settings say.
        vocabulary_size: V.
        settings: how.
        device: where; CPU by default.
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
        """An epoch; the mean cross-entropy of a word."""
        self.module.train()
        self.module.seed_dropout(int(rng.integers(2**63)))
        total = torch.zeros((), dtype=torch.float64, device=self.module.words.device)
        order = rng.permutation(len(self.texts))
        for number, batch in enumerate(length_batches(order, [self.texts.lengths], self.settings.batch_size, rng)):
            total += self._update(batch, number)
            tick(len(batch))
        return float(total) / (len(self.texts.words) + len(self.texts))

    def _update(self, batch: Int64Array, number: int) -> Tensor:
        """One step of Adam; the sum of the cross-entropies."""
        self.learnt.scale_rates(1 - self.share(number))
        loss, count = self.module.loss(self.texts.select(batch))
        self.learnt.step(loss / count, self.settings.clip)
        return loss.detach()

    def _report(self, loss: float) -> EpochReport:
        return EpochReport(self.epoch, loss, self.updates_done)

    def start_errors(self) -> dict[str, StartError]:
        """The cross-entropy where every word is as probable as any other, which is about that of the start."""
        return {"train": StartError.of(math.log(self._vocabulary_size))}

    def fault(self) -> str | None:
        """Why what was learnt is of no use: guessing is as good; None if it is not, or if the texts are too few.

        The cross-entropy is that of some of the texts, without dropout: where there was one epoch, its mean says more
        of the start than of the end.
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
        return f"the cross-entropy is {error:.4g} a word, that of guessing is {chance:.4g}"


def train_autoencoder(
    texts: Phrases,
    vocabulary: Vocabulary,
    settings: AutoencoderSettings,
    run: TrainingRun,
) -> AutoencoderModel:
    """Train a text autoencoder and save it.

    Args:
        texts: what to learn from, in ids of the vocabulary.
        vocabulary: of the texts.
        settings: how.
        run: where and how.

    Raises:
        ModelError: there is a finished model or an unfinished training; or the checkpoint is missing, damaged, or of
            other texts or settings.
        DivergedError: the learning rate is too large, and the last good checkpoint stays; or the model is no better
            than guessing, and its checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: there is no text, or one has no words or more than the settings allow.
    """
    lengths = texts.lengths
    if not len(texts) or lengths.min() < 1 or lengths.max() > settings.max_length:
        raise ValueError(f"expected texts of 1 to {settings.max_length} words, at least one")
    run.check()
    # A checkpoint with two moments of Adam, and the one that takes its place.
    run.check_space(2 * 3 * 4 * sum(map(math.prod, settings.shape.shapes(len(vocabulary)).values())))
    identity = {"texts": fingerprint(text_parts([texts], [vocabulary.words])), "settings": settings.as_dict()}

    def start() -> AutoencoderTrainer:
        return AutoencoderTrainer(texts, len(vocabulary), settings, run.device)

    trainer = train_epochs(run, identity, start)
    if fault := trainer.fault():
        run.refuse(guessing(run.folder, fault, settings.learning_rate))
    training = {**settings.as_dict(), "texts": len(texts), "epochs_done": trainer.epoch, **run.record}
    model = AutoencoderModel(vocabulary, settings.shape, trainer.module.numpy(), training)
    run.save(model)
    return model
