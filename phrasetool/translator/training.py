"""Train a translator, fit its temperature, and reject it if it predicts at chance level.

A batch has sentence pairs with sources of one length or of a few similar lengths, and targets of nearly one length;
which pairs share a batch, and the order of the batches, are drawn again for every epoch.  On a CPU, training is
reproducible for a given seed and number of threads; on a GPU, as far as torch is.

With p the prediction and u_w the target vectors, p(w) = softmax_w(cos(p, u_w) / temperature).  The temperature, one
number, is fitted to held-out sentences by maximum likelihood (`fitted_temperature`).  A translator trained with the
von Mises-Fisher likelihood also predicts its certainty at each step; only the direction is used here, so that the
translators of all losses are used in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phrasetool.nn.device import FLOAT32, autocast
from phrasetool.nn.losses import softmax_cross_entropy
from phrasetool.phrase_encoder.losses import FrozenBatch
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.ranking import CHANCE, pairwise_auc
from phrasetool.training.data import PhrasePairs, fingerprint, length_batches
from phrasetool.training.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.training.run import StartError, TrainingRun, guessing
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.network import TranslatorNetwork, padded_targets
from phrasetool.translator.settings import TranslatorSettings
from phrasetool.unique_phrases import number_distinct

# Number of predictions that the temperature is fitted to, enough for three digits.
_FITTED_PREDICTIONS = 4096
_SENTENCE_BATCH = 64
# Range of the logarithm of the temperature.
_LOG_TEMPERATURES = -7.0, 2.0


@torch.no_grad()
def fitted_temperature(module: TranslatorNetwork, pairs: PhrasePairs, seed: int) -> float:
    """Return the temperature with the highest likelihood of held-out sentences; 1 for a softmax.

    Args:
        module: trained network.
        pairs: sentences and their translations.
        seed: random seed of the sample of pairs.
    """
    if not module.architecture.continuous:
        return 1.0
    batches = list(_predictions(module, pairs, seed))
    predicted = functional.normalize(torch.cat([rows for rows, _ in batches]), dim=1)
    words = torch.cat([ids for _, ids in batches])
    cosines = predicted @ module.targets.T
    own_cosines = cosines.gather(1, words[:, None])[:, 0]

    def likelihood(logarithm: float) -> float:
        return float((own_cosines / math.exp(logarithm) - (cosines / math.exp(logarithm)).logsumexp(1)).mean())

    return math.exp(_argmax_unimodal(likelihood, *_LOG_TEMPERATURES))


def _predictions(module: TranslatorNetwork, pairs: PhrasePairs, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield predictions for random sentences, and the ids of the correct words, until there are enough."""
    order = np.random.default_rng(seed).permutation(len(pairs))
    predictions = 0
    for first in range(0, len(order), _SENTENCE_BATCH):
        batch = order[first : first + _SENTENCE_BATCH]
        targets = padded_targets(pairs.targets.select(batch), module.end).to(module.words.device)
        words = targets[targets >= 0]
        yield module.predict(module.encode(pairs.sources.select(batch)), targets), words
        predictions += len(words)
        if predictions >= _FITTED_PREDICTIONS:
            return


def _argmax_unimodal(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument that maximises a unimodal function, by golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-4:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
    return (low + high) / 2


# Maximum number of compared pairs, and minimum number of distinct sources for a decision.
_COMPARED_PAIRS, _FEWEST_SOURCES = 500, 100


def check_better_than_chance(module: TranslatorNetwork, pairs: PhrasePairs, seed: int) -> str | None:
    """Return why the predictions of a translator do not depend on its source; None if they do, or if pairs are too few.

    Each translation is scored word by word with its own source and with others, so a translator that only predicts
    frequent words is at chance level.

    Args:
        module: network in evaluation mode.
        pairs: sentences and their translations, held out if possible.
        seed: random seed of the sample of pairs and of the other sources.
    """
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:_COMPARED_PAIRS]
    sources, targets = pairs.sources.select(chosen), pairs.targets.select(chosen)
    numbers, firsts = number_distinct(sources)
    if len(firsts) < _FEWEST_SOURCES:
        return None

    def word_scores(which: Int64Array) -> FloatArray:
        return _mean_word_scores(module, sources.select(firsts[which]), targets)

    auc = pairwise_auc(word_scores(numbers), numbers, word_scores, seed)
    if auc is None or auc >= CHANCE:
        return None
    return f"it ranks the source of a translation above other sources with AUC {auc:.2f}; chance is 0.5"


@torch.no_grad()
def _mean_word_scores(module: TranslatorNetwork, sources: Phrases, targets: Phrases) -> FloatArray:
    """Return the mean score per word of N translations: cosines, or log probabilities of a softmax; shape (N,)."""
    scores = np.empty(len(sources), np.float32)
    for first in range(0, len(sources), _SENTENCE_BATCH):
        part = slice(first, first + _SENTENCE_BATCH)
        chosen = targets.part(first, min(first + _SENTENCE_BATCH, len(targets)))
        padded = padded_targets(chosen, module.end).to(module.words.device)
        predicted = module.predict(module.encode(sources.part(first, first + len(chosen))), padded)
        words = padded[padded >= 0]
        if module.architecture.continuous:
            word_scores = functional.cosine_similarity(predicted, module.targets[words], 1)
        else:
            word_scores = module.logits(predicted).log_softmax(1).gather(1, words[:, None])[:, 0]
        ends = np.cumsum(chosen.lengths + 1)
        scores[part] = np.add.reduceat(word_scores.cpu().numpy(), ends - chosen.lengths - 1) / (chosen.lengths + 1)
    return scores


@dataclass(frozen=True)
class TranslatorReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: number of the epoch, from 1.
        loss: mean loss per word (or end) over the epoch.
        development_loss: mean loss per word on the development set after the epoch; None without one.
        updates: number of updates so far.
    """

    epoch: int
    loss: float
    development_loss: float | None
    updates: int


class TranslatorTrainer(EpochTrainer[TranslatorReport]):
    """Trainer of a translator.

    Args:
        pairs: training pairs.
        development: pairs that decide which epoch is kept; None for the last epoch.
        targets: vectors to predict, see `target_table`.
        settings: hyper-parameters.
        device: device to train on; CPU by default.
    """

    def __init__(
        self,
        pairs: PhrasePairs,
        development: PhrasePairs | None,
        targets: FloatArray,
        settings: TranslatorSettings,
        device: torch.device | None = None,
    ) -> None:
        self.pairs, self.development, self.settings = pairs, development, settings
        module = TranslatorNetwork(
            settings.architecture, len(pairs.source_vocabulary), targets, settings.seed, settings.dropout
        )
        self.module = module.to(device or torch.device("cpu"))
        adam = torch.optim.Adam(self.module.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.module.named_parameters()), {ADAM: adam})
        super().__init__(learnt, (settings.seed,), settings.epochs, -(-len(pairs) // settings.batch_size))
        self._start_loss = self._mean_loss(pairs, settings.batch_size)

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Run one epoch; return the mean loss per word."""
        self.module.train()
        self.module.seed_dropout(int(rng.integers(2**63)))
        total = torch.zeros((), dtype=torch.float64, device=self.module.words.device)
        lengths = self.pairs.sources.lengths, self.pairs.targets.lengths
        order = rng.permutation(len(self.pairs))
        for number, batch in enumerate(length_batches(order, lengths, self.settings.batch_size, rng)):
            total += self._update(batch, rng, number)
            tick(len(batch))
        return float(total) / (len(self.pairs.targets.words) + len(self.pairs))

    def kept(self) -> TranslatorNetwork:
        """Return the network of the best epoch; without a development set, of the last one."""
        self.learnt.take_best()
        return self.module.eval()

    def _update(self, batch: Int64Array, rng: np.random.Generator, number: int) -> Tensor:
        """Take one step of Adam; return the sum of the losses."""
        s = self.settings
        if s.schedule == "linear":
            self.learnt.scale_rates(1 - self.share(number))
        losses, _ = self._losses(self.pairs, batch, rng, s.precision)
        # The loss of a sentence is a sum over its words, not their mean, as in the program of the predecessor.
        self.learnt.step(losses / len(batch), s.clip)
        return losses.detach()

    def _losses(
        self, pairs: PhrasePairs, batch: Int64Array, rng: np.random.Generator, precision: str = FLOAT32
    ) -> tuple[Tensor, int]:
        """Return the sum of the losses of a batch, a scalar, and their number."""
        module = self.module
        targets = padded_targets(pairs.targets.select(batch), module.end).to(module.words.device)
        with autocast(precision, module.words.device):
            predicted = module.predict(module.encode(pairs.sources.select(batch)), targets).float()
        words = targets[targets >= 0]
        objective = self.settings.objective
        if objective is None:
            assert module.bias is not None
            return softmax_cross_entropy(predicted, module.targets, module.bias, words, precision), len(words)
        frozen = FrozenBatch(module.targets[words], None, module.targets, rng)
        return objective.frozen_losses(predicted, frozen).sum(), len(words)

    @torch.no_grad()
    def _mean_loss(self, pairs: PhrasePairs, most: int | None = None) -> float:
        """Return the mean loss per word of the first pairs, without dropout."""
        rng = np.random.default_rng(self.settings.seed)
        self.module.eval()
        total = count = 0.0
        order = np.lexsort((pairs.targets.lengths[:most], pairs.sources.lengths[:most]))
        for first in range(0, len(order), self.settings.batch_size):
            losses, words = self._losses(pairs, order[first : first + self.settings.batch_size], rng)
            total, count = total + float(losses), count + words
        return total / count

    def _report(self, loss: float) -> TranslatorReport:
        development_loss = None if self.development is None else self._mean_loss(self.development)
        return TranslatorReport(self.epoch, loss, development_loss, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float | None:
        return None if report["development_loss"] is None else -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """Return the loss of the first batch before the first update."""
        bounded = self.settings.objective is None or self.settings.objective.bounded
        return {"train": StartError.of(self._start_loss, 0.0 if bounded else float(self.settings.dimension))}

    def progress(self) -> dict[str, Any]:
        """Return the state of the training that is not in tensors, as JSON values."""
        return {**super().progress(), "start_loss": self._start_loss}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Restore the state that `tensors` and `progress` recorded, see `EpochTrainer.restore`."""
        super().restore(tensors, progress)
        self._start_loss = progress["start_loss"]


def checkpoint_bytes(settings: TranslatorSettings, source_words: int, target_words: int) -> int:
    """Return the maximum size in bytes of the files that training writes.

    These are the old and the new checkpoint, each with the parameters, two moments of Adam, and the best parameters.

    Args:
        settings: hyper-parameters.
        source_words, target_words: sizes of the vocabularies, including the unknown word.
    """
    table = np.zeros((target_words + 1, settings.dimension), np.float32)
    module = TranslatorNetwork(settings.architecture, source_words, table)
    return 2 * 4 * 4 * sum(value.numel() for value in module.parameters())


def train_translator(
    pairs: PhrasePairs,
    development: PhrasePairs | None,
    targets: FloatArray,
    settings: TranslatorSettings,
    run: TrainingRun,
) -> TranslatorModel:
    """Train a translator and save it.

    Args:
        pairs: training pairs.
        development: pairs that decide which epoch is kept, and the temperature; None for the last epoch and the
            training pairs.
        targets: vectors to predict, shape (V + 1, d), see `target_table`.
        settings: hyper-parameters.
        run: model folder, device and listeners.

    Raises:
        ModelError: the folder holds a finished model or an unfinished training; the checkpoint is missing, damaged, or
            of other texts or settings.
        DivergedError: the learning rate is too large, and the last good checkpoint is kept; or the model is at chance
            level, and its checkpoint is kept.
        PhraseToolError: the folder cannot be written, or the disk has too little space.
        ValueError: `pairs` is empty.
    """
    if not len(pairs):
        raise ValueError("expected sentence pairs, at least one")
    run.check()
    run.check_space(checkpoint_bytes(settings, len(pairs.source_vocabulary), len(pairs.target_vocabulary)))
    identity = {
        "texts": [pairs.fingerprint, development.fingerprint if development else ""],
        "target vectors": fingerprint((targets,)),
        "settings": settings.as_dict(),
    }

    def start() -> TranslatorTrainer:
        return TranslatorTrainer(pairs, development, targets, settings, run.device)

    trainer = train_epochs(run, identity, start)
    module = trainer.kept()
    if reason := check_better_than_chance(module, development or pairs, settings.seed):
        run.refuse(guessing(run.folder, reason, settings.learning_rate))
    temperature = fitted_temperature(module, development or pairs, settings.seed)
    training = {**settings.as_dict(), "pairs": len(pairs), "epochs_done": trainer.epoch, **run.record}
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    model = TranslatorModel(*vocabularies, settings.architecture, module.arrays(), temperature, training)
    run.save(model)
    return model
