"""Train a translator, fit its temperature, and refuse one that is no better than chance.

A batch has sentence pairs with sources of one length or of a few that are close, and targets of nearly one length;
which pairs share a batch, and the order of the batches, are drawn again for every epoch.  On a CPU a seed fixes the
weights for a given number of threads; on a GPU it does so as far as torch does.

With p the prediction and u_w the target vectors, p(w) = softmax_w(cos(p, u_w) / temperature).  The temperature, one
number, is fitted to held-out sentences by maximum likelihood (`fitted_temperature`).  A translator trained by the
likelihood of von Mises and Fisher also predicts its certainty at each step; only its direction is used here, so that
the translators of all losses are used alike.
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

from phrasetool.nn.softmax_output import softmax_cross_entropy
from phrasetool.phrase_encoder.losses import FrozenBatch
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.ranking import CHANCE, pairwise_auc
from phrasetool.train.checks import StartError, guessing
from phrasetool.train.data import PhrasePairs, fingerprint, length_batches
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick, train_epochs
from phrasetool.train.run import TrainingRun
from phrasetool.translator.model import NeuralModel
from phrasetool.translator.network import NeuralTranslator, padded_targets
from phrasetool.translator.settings import NeuralSettings
from phrasetool.unique_phrases import number_distinct

# Predictions that one number is fitted to: enough for three digits of it.
_FITTED_PREDICTIONS = 4096
_SENTENCES_AT_ONCE = 64
# Logarithms of temperatures that are looked at.
_LOG_TEMPERATURES = -7.0, 2.0


@torch.no_grad()
def fitted_temperature(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> float:
    """The temperature with the highest likelihood of held-out sentences; 1 for a softmax.

    Args:
        module: is asked what it predicts.
        pairs: sentences and their translations.
        seed: of the sample that is taken of them.
    """
    if not module.architecture.continuous:
        return 1.0
    found = list(_predictions(module, pairs, seed))
    predicted = functional.normalize(torch.cat([rows for rows, _ in found]), dim=1)
    wanted = torch.cat([ids for _, ids in found])
    cosines = predicted @ module.targets.T
    right = cosines.gather(1, wanted[:, None])[:, 0]

    def likelihood(logarithm: float) -> float:
        return float((right / math.exp(logarithm) - (cosines / math.exp(logarithm)).logsumexp(1)).mean())

    return math.exp(_argmax_unimodal(likelihood, *_LOG_TEMPERATURES))


def _predictions(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """What is predicted for random sentences, and the ids that come there, until there are enough."""
    order = np.random.default_rng(seed).permutation(len(pairs))
    count = 0
    for first in range(0, len(order), _SENTENCES_AT_ONCE):
        batch = order[first : first + _SENTENCES_AT_ONCE]
        targets = padded_targets(pairs.targets.select(batch), module.end).to(module.words.device)
        wanted = targets[targets >= 0]
        yield module.predict(module.encode(pairs.sources.select(batch)), targets), wanted
        count += len(wanted)
        if count >= _FITTED_PREDICTIONS:
            return


def _argmax_unimodal(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one hill is highest, by golden section."""
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


# Pairs that are looked at, and how many are enough to say something.
_COMPARED_PAIRS, _FEWEST_SOURCES = 500, 100


def fault_of_guessing(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> str | None:
    """Why a translator is of no use: its predictions do not depend on what it reads; None if they do.

    Each translation is read word by word beside its own sentence and beside others.  That also holds a translator of
    frequent words to what it knows of the sentence.

    Args:
        module: not in training.
        pairs: sentences and their translations, which it did not learn from; too few say nothing.
        seed: of the sample that is taken of them, and of the other sentences.
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
    return f"it tells sentences from others by their translations with AUC {auc:.2f}, that of guessing is 0.5"


@torch.no_grad()
def _mean_word_scores(module: NeuralTranslator, sources: Phrases, targets: Phrases) -> FloatArray:
    """How well N translations are predicted, a word: cosines, or logarithms of a softmax; shape (N,)."""
    found = np.empty(len(sources), np.float32)
    for first in range(0, len(sources), _SENTENCES_AT_ONCE):
        part = slice(first, first + _SENTENCES_AT_ONCE)
        chosen = targets.part(first, min(first + _SENTENCES_AT_ONCE, len(targets)))
        words = padded_targets(chosen, module.end).to(module.words.device)
        predicted = module.predict(module.encode(sources.part(first, first + len(chosen))), words)
        wanted = words[words >= 0]
        if module.architecture.continuous:
            right = functional.cosine_similarity(predicted, module.targets[wanted], 1)
        else:
            right = module.logits(predicted).log_softmax(1).gather(1, wanted[:, None])[:, 0]
        ends = np.cumsum(chosen.lengths + 1)
        found[part] = np.add.reduceat(right.cpu().numpy(), ends - chosen.lengths - 1) / (chosen.lengths + 1)
    return found


@dataclass(frozen=True)
class NeuralReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        loss: mean of a word (or end) over the epoch.
        development_loss: that of the development set after the epoch; None without one.
        updates: done so far.
    """

    epoch: int
    loss: float
    development_loss: float | None
    updates: int


class NeuralTrainer(EpochTrainer[NeuralReport]):
    """Trains a translator.

    Args:
        pairs: what to learn from.
        development: decides which epoch is kept; None for the last.
        targets: the vectors to predict, see `target_table`.
        settings: how.
        device: where; CPU by default.
    """

    def __init__(
        self,
        pairs: PhrasePairs,
        development: PhrasePairs | None,
        targets: FloatArray,
        settings: NeuralSettings,
        device: torch.device | None = None,
    ) -> None:
        self.pairs, self.development, self.settings = pairs, development, settings
        module = NeuralTranslator(
            settings.architecture, len(pairs.source_vocabulary), targets, settings.seed, settings.dropout
        )
        self.module = module.to(device or torch.device("cpu"))
        adam = torch.optim.Adam(self.module.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.module.named_parameters()), {ADAM: adam})
        super().__init__(learnt, (settings.seed,), settings.epochs, -(-len(pairs) // settings.batch_size))
        self._start_loss = self._mean_loss(pairs, settings.batch_size)

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of a word."""
        self.module.train()
        self.module.seed_dropout(int(rng.integers(2**63)))
        total = torch.zeros((), dtype=torch.float64, device=self.module.words.device)
        lengths = self.pairs.sources.lengths, self.pairs.targets.lengths
        order = rng.permutation(len(self.pairs))
        for number, batch in enumerate(length_batches(order, lengths, self.settings.batch_size, rng)):
            total += self._update(batch, rng, number)
            tick(len(batch))
        return float(total) / (len(self.pairs.targets.words) + len(self.pairs))

    def kept(self) -> NeuralTranslator:
        """The translator of the best epoch; without a development set, of the last."""
        self.learnt.take_best()
        return self.module.eval()

    def _update(self, batch: Int64Array, rng: np.random.Generator, number: int) -> Tensor:
        """One step of Adam; the sum of the losses."""
        s = self.settings
        if s.schedule == "linear":
            self.learnt.scale_rates(1 - self.share(number))
        losses, _ = self._losses(self.pairs, batch, rng)
        # As in the predecessor's program the sum over a sentence's words counts, not their mean.
        self.learnt.step(losses / len(batch), s.clip)
        return losses.detach()

    def _losses(self, pairs: PhrasePairs, batch: Int64Array, rng: np.random.Generator) -> tuple[Tensor, int]:
        """Sum of the losses of a batch, a scalar, and how many there are."""
        module = self.module
        targets = padded_targets(pairs.targets.select(batch), module.end).to(module.words.device)
        predicted = module.predict(module.encode(pairs.sources.select(batch)), targets)
        wanted = targets[targets >= 0]
        objective = self.settings.objective
        if objective is None:
            assert module.bias is not None
            return softmax_cross_entropy(predicted, module.targets, module.bias, wanted), len(wanted)
        frozen = FrozenBatch(module.targets[wanted], None, module.targets, rng)
        return objective.frozen_losses(predicted, frozen).sum(), len(wanted)

    @torch.no_grad()
    def _mean_loss(self, pairs: PhrasePairs, most: int | None = None) -> float:
        """Mean loss of a word of some pairs (the first ones), without dropout."""
        rng = np.random.default_rng(self.settings.seed)
        self.module.eval()
        total = count = 0.0
        order = np.lexsort((pairs.targets.lengths[:most], pairs.sources.lengths[:most]))
        for first in range(0, len(order), self.settings.batch_size):
            losses, words = self._losses(pairs, order[first : first + self.settings.batch_size], rng)
            total, count = total + float(losses), count + words
        return total / count

    def _report(self, loss: float) -> NeuralReport:
        found = None if self.development is None else self._mean_loss(self.development)
        return NeuralReport(self.epoch, loss, found, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float | None:
        return None if report["development_loss"] is None else -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of a first batch before the first update."""
        bounded = self.settings.objective is None or self.settings.objective.bounded
        return {"train": StartError.of(self._start_loss, 0.0 if bounded else float(self.settings.dimension))}

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        return {**super().progress(), "start_loss": self._start_loss}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """See `EpochTrainer`."""
        super().restore(tensors, progress)
        self._start_loss = progress["start_loss"]


def checkpoint_bytes(settings: NeuralSettings, source_words: int, target_words: int) -> int:
    """What training writes at most: a checkpoint with two moments of Adam and the best so far, and its successor.

    Args:
        settings: of the training.
        source_words, target_words: of the vocabularies, the unknown word included.
    """
    table = np.zeros((target_words + 1, settings.dimension), np.float32)
    module = NeuralTranslator(settings.architecture, source_words, table)
    return 2 * 4 * 4 * sum(value.numel() for value in module.parameters())


def train_neural(
    pairs: PhrasePairs,
    development: PhrasePairs | None,
    targets: FloatArray,
    settings: NeuralSettings,
    run: TrainingRun,
) -> NeuralModel:
    """Train a translator and save it.

    Args:
        pairs: what to learn from.
        development: decides which epoch is kept, and the temperature; None for the last epoch, and the pairs.
        targets: the vectors to predict, shape (V + 1, d), see `target_table`.
        settings: how.
        run: where and how.

    Raises:
        ModelError: there is a finished model; or the checkpoint is missing, damaged, or of other texts or settings.
        DivergedError: the learning rate is too large, and the last good checkpoint stays; or the model is no better
            than guessing, and its checkpoint stays.
        PhraseToolError: the folder cannot be written, or has too little room.
        ValueError: there is no pair.
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

    def start() -> NeuralTrainer:
        return NeuralTrainer(pairs, development, targets, settings, run.device)

    trainer = train_epochs(run, identity, start)
    module = trainer.kept()
    if fault := fault_of_guessing(module, development or pairs, settings.seed):
        run.refuse(guessing(run.folder, fault, settings.learning_rate))
    temperature = fitted_temperature(module, development or pairs, settings.seed)
    training = {**settings.as_dict(), "pairs": len(pairs), "epochs_done": trainer.epoch, **run.record}
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    model = NeuralModel(*vocabularies, settings.architecture, module.arrays(), temperature, training)
    run.save(model)
    return model
