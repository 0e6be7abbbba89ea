"""Train a tagger, with a checkpoint after each epoch; the best on a development set is kept.

Features learn by a sparse Adam, which moves only those that a batch has; all else by Adam.  On a CPU a seed fixes the
weights for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phrasetool.phrases import Int64Array
from phrasetool.tagging.tagger_network import TaggerNetwork
from phrasetool.training.divergence import StartError
from phrasetool.training.resumable import optimizer_tensors, restore_optimizer
from phrasetool.training.tagger.tagger_examples import NO_TAG, TaggerExamples, Treebanks
from phrasetool.training.tagger.tagger_measures import TagAccuracy, accuracies
from phrasetool.training.tagger.tagger_settings import TaggerSettings

_DENSE, _SPARSE, _BEST = "optimizer.", "features_optimizer.", "best."
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


class TaggerTrainer:
    """Trains a tagger.

    Args:
        examples: what to learn from.
        development: decides which epoch is kept.
        tags: that are learnt.
        settings: how.
        device: where; CPU by default.

    Attributes:
        epoch: epochs done.
        best: the report of the best epoch.
    """

    def __init__(
        self, examples: TaggerExamples, development: Treebanks, tags: Sequence[str], settings: TaggerSettings,
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.examples, self.development, self.tags, self.settings = examples, development, tuple(tags), settings
        self._device = device or torch.device("cpu")
        self.network = TaggerNetwork(settings.shape(len(tags)), settings.seed).to(self._device)
        self._dense = [p for name, p in self.network.named_parameters() if not name.startswith("features.")]
        self.optimizer = torch.optim.Adam(self._dense, lr=settings.learning_rate)
        self.features_optimizer = torch.optim.SparseAdam(self.network.features.parameters(), lr=settings.learning_rate)
        self.epoch = 0
        self.best: dict[str, Any] | None = None
        self._updates_an_epoch = -(-len(examples) // settings.batch_size)
        self._kept: dict[str, Tensor] | None = None

    def run(self, tick: Callable[[int], None] = lambda sentences: None) -> Iterator[TaggerReport]:
        """Train to the last epoch; yields after every epoch.

        Args:
            tick: called with the number of sentences just seen.
        """
        s = self.settings
        while self.epoch < s.epochs:
            # An epoch's draws depend on the seed and its number alone, so that a checkpoint keeps no random state.
            rng = np.random.default_rng([s.seed, self.epoch + 1])
            self.network.seed_dropout(int(rng.integers(2**62)))
            total, words = 0.0, 0
            lower = rng.random(len(self.examples)) < s.lower_cased
            for number, batch in enumerate(self._batches(rng)):
                loss, count = self._update(batch, lower[batch], rng, self.epoch * self._updates_an_epoch + number)
                total, words = total + loss * count, words + count
                tick(len(batch))
            self.epoch += 1
            report = self._report(total / max(words, 1))
            score = report.accuracy + report.lower_accuracy
            if self.best is None or score > self.best["accuracy"] + self.best["lower_accuracy"]:
                self.best = {**report.__dict__}
                self._kept = {name: value.detach().clone() for name, value in self.network.named_parameters()}
            yield report

    def kept(self) -> TaggerNetwork:
        """The tagger of the best epoch, on the CPU."""
        if self._kept is not None:
            self._load(self._kept)
        return self.network.cpu()

    def _batches(self, rng: np.random.Generator) -> list[Int64Array]:
        """All sentences in batches of about one length, in random order."""
        size, lengths = self.settings.batch_size, self.examples.lengths
        order = rng.permutation(len(lengths))
        found: list[Int64Array] = []
        for first in range(0, len(order), size * _POOL):
            pool = order[first : first + size * _POOL]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            found += [pool[start : start + size] for start in range(0, len(pool), size)]
        return [found[number] for number in rng.permutation(len(found))]

    def _update(self, batch: Int64Array, lower: Any, rng: np.random.Generator, done: int) -> tuple[float, int]:
        """One step; the mean loss of a word, and of how many words."""
        s, e = self.settings, self.examples
        rate = s.learning_rate * (1 - done / (s.epochs * self._updates_an_epoch))
        for group in (*self.optimizer.param_groups, *self.features_optimizer.param_groups):
            group["lr"] = rate
        lengths = e.lengths[batch]
        places = np.concatenate([np.arange(e.offsets[i], e.offsets[i + 1]) for i in batch.tolist()])
        words = np.where(np.repeat(lower, lengths), e.lower[places], e.words[places])
        rows = e.rows[words].astype(np.int64)
        rows[rng.random(len(rows)) < s.hidden_words, 0] = 0
        tags = torch.from_numpy(e.tags[places]).to(self._device)
        count = int((e.tags[places] != NO_TAG).sum())
        if not count:
            return 0.0, 0
        self.optimizer.zero_grad()
        self.features_optimizer.zero_grad()
        logits = self.network(torch.from_numpy(rows).to(self._device), lengths, s.dropout)
        loss = torch.nn.functional.cross_entropy(logits, tags, ignore_index=NO_TAG)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._dense, s.clip)
        self.optimizer.step()
        self.features_optimizer.step()  # type: ignore[no-untyped-call]
        return float(loss.detach()), count

    def _report(self, loss: float) -> TaggerReport:
        """What the tagger is worth after an epoch."""
        s = self.settings
        found = accuracies(self.network.arrays(), s.shape(len(self.tags)), self.tags, self.development)
        return TaggerReport(
            self.epoch, loss, _mean(found, "accuracy"), _mean(found, "lower_accuracy"),
            self.epoch * self._updates_an_epoch,
        )  # fmt: skip

    def _load(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.network.named_parameters():
                value.copy_(tensors[name])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        return {"train": StartError.of(float(np.log(len(self.tags))))}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor needed to go on: parameters, the best so far, and optimiser state, on CPU."""
        found = {name: value.detach() for name, value in self.network.named_parameters()}
        found.update({_BEST + name: value for name, value in (self._kept or {}).items()})
        found.update(optimizer_tensors(self.optimizer, _DENSE))
        found.update(optimizer_tensors(self.features_optimizer, _SPARSE))
        return {name: value.cpu().contiguous() for name, value in found.items()}

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        steps = {number: state["step"] for number, state in self.features_optimizer.state_dict()["state"].items()}
        return {"epoch": self.epoch, "best": self.best, "steps": {str(key): int(step) for key, step in steps.items()}}

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Go on where `tensors` and `progress` were taken.

        Raises:
            KeyError, RuntimeError, ValueError: they are of other settings or sentences.
        """
        self._load(tensors)
        restore_optimizer(self.optimizer, tensors, _DENSE)
        restore_optimizer(self.features_optimizer, tensors, _SPARSE)
        # The sparse Adam counts its steps in a number, not in a tensor.
        for number, parameter in enumerate(self.network.features.parameters()):
            self.features_optimizer.state[parameter]["step"] = progress["steps"][str(number)]
        self.epoch, self.best = progress["epoch"], progress["best"]
        if self.best is not None:
            names = [name for name, _ in self.network.named_parameters()]
            self._kept = {name: tensors[_BEST + name].to(self._device) for name in names}


def _mean(found: dict[str, TagAccuracy], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in found.values()]))
