"""Train a classifier of sentence pairs.

Each sentence of a batch is encoded once; its wrong targets are those of others in the batch, and some that contain
the right one or are a part of it.  On a CPU a seed fixes the weights for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phrasetool.pair_classifier.batch_negatives import batch_negatives, epoch_batches
from phrasetool.pair_classifier.classifier import SiameseClassifier
from phrasetool.pair_classifier.containment import containment_negatives
from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.pair_classifier.labelled_pairs import contained_pairs, encoded_logits, random_pairs
from phrasetool.pair_classifier.pair_losses import contrast_loss, parallel_loss
from phrasetool.pair_classifier.pair_quality import area_under_curve, best_quality, probabilities_of, quality_at
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.pair_classifier.token_inputs import SOURCE, TARGET
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.train.checks import StartError
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick
from phrasetool.train.text_pairs import TextPairs

# Share of the updates in which the step size rises from nothing.
_WARM = 0.05
# Random wrong pairs for each true one of the development set, as the paper has.
_NEGATIVES = 5


@dataclass(frozen=True)
class ParallelReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        loss: mean of an update over the epoch, that of sentence vectors included.
        development_loss: binary cross-entropy of the development set's pairs, five random wrong ones a true one.
        precision, recall, f1: of these at 0.5.
        best_f1, best_threshold: of the threshold with the highest F1.
        contained_f1: at 0.5, with wrong targets by containment, one a true one.
        auc: of the random pairs.
        updates: done so far.
    """

    epoch: int
    loss: float
    development_loss: float
    precision: float
    recall: float
    f1: float
    best_f1: float
    best_threshold: float
    contained_f1: float
    auc: float
    updates: int


def _parameter_groups(classifier: SiameseClassifier, settings: ParallelSettings) -> list[dict[str, Any]]:
    """What learns, by its step size."""
    layers = classifier.inputs.layers()
    slow = {id(parameter) for parameter in layers}
    fast = [parameter for parameter in classifier.parameters() if parameter.requires_grad and id(parameter) not in slow]
    rates = ((fast, settings.learning_rate), (layers, settings.layers_learning_rate))
    return [{"params": params, "lr": rate} for params, rate in rates if params]


class ParallelTrainer(EpochTrainer[ParallelReport]):
    """Trains a classifier.

    Args:
        pairs: what to learn from.
        development: decides which epoch is kept.
        classifier: fresh; it is trained.
        settings: how.
        device: where; CPU by default.
    """

    def __init__(
        self, pairs: TextPairs, development: TextPairs, classifier: SiameseClassifier, settings: ParallelSettings,
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.pairs, self.settings = pairs, settings
        self.module = classifier.to(device or torch.device("cpu"))
        self.random = random_pairs(development, _NEGATIVES, settings.seed)
        self.contained = contained_pairs(development, settings.seed)
        adam = torch.optim.Adam(_parameter_groups(classifier, settings), fused=True)
        learnt = {name: value for name, value in classifier.named_parameters() if value.requires_grad}
        updates = -(-len(pairs) // settings.batch_size)
        super().__init__(LearntParameters(learnt, {ADAM: adam}), (settings.seed,), settings.epochs, updates)
        self._known = KnownTranslations(pairs.sources, pairs.targets)
        inputs = classifier.inputs
        self._lexicons = inputs.lexicon(SOURCE, pairs.source_words), inputs.lexicon(TARGET, pairs.target_words)
        for side, texts in ((SOURCE, pairs.sources), (TARGET, pairs.targets)):
            inputs.keep(side, texts, self._lexicons[side])

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of an update."""
        self.module.train()
        self.module.network.seed_dropout(int(rng.integers(2**62)))
        self.module.inputs.seed(int(rng.integers(2**62)))
        batches = epoch_batches(len(self.pairs), self.settings.batch_size, rng)
        total = 0.0
        for number, batch in enumerate(batches):
            total += self._update(batch, rng, number)
            tick(len(batch))
        return total / len(batches)

    def kept(self) -> SiameseClassifier:
        """The classifier of the best epoch."""
        self.learnt.take_best()
        self.module.inputs.forget()
        return self.module.eval()

    def _update(self, batch: Int64Array, rng: np.random.Generator, number: int) -> float:
        """One step of Adam; the loss."""
        if self.settings.schedule == "linear":
            share = self.share(number)
            self.learnt.scale_rates(min(1.0, (share + 1e-3) / _WARM) * (1 - share))
        loss = self._loss(batch, rng)
        self.learnt.step(loss, self.settings.clip)
        return float(loss.detach())

    def _loss(self, batch: Int64Array, rng: np.random.Generator) -> Tensor:
        s, pairs, module = self.settings, self.pairs, self.module
        translations = self._known.among(batch)
        rows, columns = batch_negatives(~translations, s.negatives, rng)
        repeated = np.tile(np.arange(len(batch)), s.containment)
        wrong, of = containment_negatives(pairs.targets, batch[repeated], self._known, rng)
        place = {pair: row for row, pair in enumerate(batch.tolist())}
        sources, targets = pairs.sources.select(batch), Phrases.concatenate([pairs.targets.select(batch), wrong])
        own = np.arange(len(batch))
        rows = np.concatenate([own, rows, np.array([place[pair] for pair in of.tolist()], np.int64)])
        columns = np.concatenate([own, columns, len(batch) + np.arange(len(wrong))])
        first, second = self._vectors(sources, targets)
        logits = module.network.logits(
            *self._chosen(first, sources.lengths, rows), *self._chosen(second, targets.lengths, columns)
        )
        loss = parallel_loss(logits, (torch.arange(len(rows), device=logits.device) < len(batch)).to(logits.dtype))
        if s.contrast:
            known = torch.from_numpy(translations).to(logits.device)
            loss = loss + s.contrast * contrast_loss(first, second[: len(batch)], known, s.contrast_temperature)
        return loss

    def _vectors(self, sources: Phrases, targets: Phrases) -> tuple[Tensor, Tensor]:
        """The vectors of both sides, which the network reads as one batch."""
        inputs = self.module.inputs
        first, counts = inputs.vectors(SOURCE, sources, self._lexicons[SOURCE])
        second, more = inputs.vectors(TARGET, targets, self._lexicons[TARGET])
        found = self.module.network.encode(torch.cat([first, second]), np.concatenate([counts, more]))
        return found[: len(sources)], found[len(sources) :]

    def _chosen(self, vectors: Tensor, lengths: Int64Array, rows: Int64Array) -> tuple[Tensor, Tensor]:
        device = vectors.device
        return vectors.index_select(0, torch.from_numpy(rows).to(device)), torch.from_numpy(lengths[rows]).to(device)

    def _report(self, loss: float) -> ParallelReport:
        """What the classifier is worth after an epoch."""
        self.module.eval()
        logits, sources = encoded_logits(self.module, self.random)
        logits = _numbers(logits)
        found, parallel = probabilities_of(logits), self.random.parallel
        half, best = quality_at(found, parallel, 0.5), best_quality(found, parallel)
        contained = probabilities_of(_numbers(encoded_logits(self.module, self.contained, sources)[0]))
        # What nothing is known of has probability 0, which is no loss to learn from.
        finite = np.isfinite(logits)
        losses = np.logaddexp(0, np.where(parallel, -logits, logits)[finite])
        loss_there = float(losses.sum() / max(len(losses), 1))
        return ParallelReport(
            self.epoch, loss, loss_there, half.precision, half.recall, half.f1, best.f1, best.threshold,
            quality_at(contained, self.contained.parallel, 0.5).f1, area_under_curve(found, parallel),
            self.updates_done,
        )  # fmt: skip

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return float(report["best_f1"])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        s = self.settings
        others = np.log(min(s.batch_size, len(self.pairs)))
        return {"train": StartError.of(float(np.log(2) + s.contrast * others))}


def _numbers(logits: DoubleArray) -> DoubleArray:
    """Logits without NaN, which a training gives that has diverged, as its loss says."""
    return np.nan_to_num(logits, nan=0.0, posinf=np.inf, neginf=-np.inf)
