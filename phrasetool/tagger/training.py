"""Train a tagger.

Features learn by a sparse Adam, which moves only those that a batch has; all else by Adam.  On a CPU a seed fixes the
weights for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from phrasetool.phrases import Int64Array
from phrasetool.tagger.data import NO_TAG, TaggerExamples, Treebanks
from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.settings import TaggerSettings
from phrasetool.tagger.tagger_measures import TagAccuracy, accuracies
from phrasetool.train.checks import StartError
from phrasetool.train.data import length_batches
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick

_SPARSE = "features_optimizer."
# Batches whose sentences are put in order of length together.
_POOL = 50


@dataclass(frozen=True)
class TaggerReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        loss: mean cross-entropy of a word over the epoch.
        accuracy, lower_accuracy: shares of words of the development set with the right tag, as written and without
            capitals; means of the languages.
        updates: done so far.
    """

    epoch: int
    loss: float
    accuracy: float
    lower_accuracy: float
    updates: int


class TaggerTrainer(EpochTrainer[TaggerReport]):
    """Trains a tagger.

    Args:
        examples: what to learn from.
        development: decides which epoch is kept.
        tags: that are learnt.
        settings: how.
        device: where; CPU by default.
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

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of a word."""
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

    def kept(self) -> TaggerNetwork:
        """The tagger of the best epoch, on the CPU."""
        self.learnt.take_best()
        return self.network.cpu()

    def _update(self, batch: Int64Array, lower: Any, rng: np.random.Generator, number: int) -> tuple[float, int]:
        """One step; the mean loss of a word, and of how many words."""
        s, e = self.settings, self.examples
        self.learnt.scale_rates(1 - self.share(number))
        lengths = e.lengths[batch]
        places = np.concatenate([np.arange(e.offsets[i], e.offsets[i + 1]) for i in batch.tolist()])
        words = np.where(np.repeat(lower, lengths), e.lower[places], e.words[places])
        rows = e.rows[words].astype(np.int64)
        rows[rng.random(len(rows)) < s.hidden_words, 0] = 0
        tags = torch.from_numpy(e.tags[places]).to(self._device)
        count = int((e.tags[places] != NO_TAG).sum())
        if not count:
            return 0.0, 0
        logits = self.network(torch.from_numpy(rows).to(self._device), lengths)
        loss = torch.nn.functional.cross_entropy(logits, tags, ignore_index=NO_TAG)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()), count

    def _report(self, loss: float) -> TaggerReport:
        """What the tagger is worth after an epoch."""
        s = self.settings
        found = accuracies(self.network.arrays(), s.shape(len(self.tags)), self.tags, self.development)
        means = _mean(found, "accuracy"), _mean(found, "lower_accuracy")
        return TaggerReport(self.epoch, loss, *means, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return float(report["accuracy"] + report["lower_accuracy"])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        return {"train": StartError.of(float(np.log(len(self.tags))))}


def _mean(found: dict[str, TagAccuracy], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in found.values()]))
