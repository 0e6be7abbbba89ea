"""Train a syntactic encoder.

On a CPU a seed fixes the weights for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from phrasetool.nn.device import products_in
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.syntax.data import SyntaxExamples
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.syntax.syntax_shape import END, TAGS, SyntaxShape
from phrasetool.train.checks import StartError
from phrasetool.train.data import length_batches
from phrasetool.train.loop import ADAM, EpochTrainer, LearntParameters, Tick

# Batches whose examples are put in order of length together.
_POOL = 500
# Of a place behind the end of a sequence, which nothing is learnt from.
_NOTHING = -100


@dataclass(frozen=True)
class SyntaxReport:
    """One line of `training.jsonl`.

    Attributes:
        epoch: from 1.
        loss: mean cross-entropy of a tag, or the end, over the epoch.
        development_loss: the same of the development set.
        development_accuracy: share of its tags that are the most probable, given those before them.
        updates: done so far.
    """

    epoch: int
    loss: float
    development_loss: float
    development_accuracy: float
    updates: int


class SyntaxTrainer(EpochTrainer[SyntaxReport]):
    """Trains an encoder with its decoder.

    Args:
        examples: what to learn from.
        development: decides which epoch is kept.
        shape: the dimensions.
        arrays: initial values.
        settings: how.
        device: where; CPU by default.
    """

    def __init__(
        self, examples: SyntaxExamples, development: SyntaxExamples, shape: SyntaxShape,
        arrays: Mapping[str, FloatArray], settings: SyntaxSettings, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.examples, self.development, self.settings = examples, development, settings
        self._device = device or torch.device("cpu")
        self.network = SyntaxNetwork(shape, arrays, settings.dropout).to(self._device)
        adam = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        learnt = LearntParameters(dict(self.network.named_parameters()), {ADAM: adam})
        updates = -(-len(examples) // settings.batch_size)
        super().__init__(learnt, (settings.seed,), settings.epochs, updates, settings.patience)

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of a tag."""
        self.network.train()
        self.network.seed_dropout(int(rng.integers(2**62)))
        total, tags = 0.0, 0
        for number, batch in enumerate(batches_by_length(self.examples, self.settings.batch_size, rng)):
            loss, count = self._update(batch, number)
            total, tags = total + loss * count, tags + count
            tick(len(batch))
        return total / tags

    def kept(self) -> SyntaxNetwork:
        """The network of the best epoch, on the CPU."""
        self.learnt.take_best()
        return self.network.cpu()

    def _update(self, batch: Int64Array, number: int) -> tuple[float, int]:
        """One step; the mean loss of a tag, and of how many tags."""
        s = self.settings
        if s.schedule == "linear":
            self.learnt.scale_rates(1 - self.share(number))
        with products_in(s.precision, self._device):
            logits, wanted = self._logits(self.examples, batch)
        loss = cross_entropy(logits.float(), wanted, ignore_index=_NOTHING)
        self.learnt.step(loss, s.clip)
        return float(loss.detach()), int((wanted != _NOTHING).sum())

    def _logits(self, examples: SyntaxExamples, batch: Int64Array) -> tuple[Tensor, Tensor]:
        """Logits of the tags of a batch and of what lies behind them, shape (N, 18), and what is wanted, (N,)."""
        # A sentence with several translations, or its own parts of speech, is read once.
        sources, readers = np.unique(examples.sources[batch], return_inverse=True)
        read, written = examples.texts.select(sources), examples.tags.select(examples.targets[batch])
        lengths = torch.from_numpy(read.lengths)
        texts = self._there(read.padded(int(read.lengths.max())))
        tags = self._there(written.padded(int(written.lengths.max()), END))
        given = self._there(readers)
        vectors, last = (part.index_select(0, given) for part in self.network.encode(texts, lengths))
        logits = self.network.decode(vectors, last, self._there(examples.languages[batch]), tags)
        wanted = torch.cat([tags, torch.full_like(tags[:, :1], END)], 1)
        behind = np.arange(wanted.shape[1])[None] > written.lengths[:, None]
        wanted[self._there(behind, np.bool_)] = _NOTHING
        return logits.reshape(-1, TAGS + 1), wanted.reshape(-1)

    def _there(self, array: Any, kind: Any = np.int64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, kind)).to(self._device)

    @torch.no_grad()
    def _report(self, loss: float) -> SyntaxReport:
        """What the network is worth after an epoch."""
        self.network.eval()
        there = self.development
        order = np.lexsort((there.sources, there.texts.lengths[there.sources]))
        total, right, tags = 0.0, 0, 0
        for first in range(0, len(order), self.settings.batch_size):
            logits, wanted = self._logits(there, order[first : first + self.settings.batch_size])
            total += float(cross_entropy(logits, wanted, ignore_index=_NOTHING, reduction="sum"))
            right += int((logits.argmax(1) == wanted).sum())
            tags += int((wanted != _NOTHING).sum())
        return SyntaxReport(self.epoch, loss, total / tags, right / tags, self.updates_done)

    def _goodness(self, report: Mapping[str, Any]) -> float:
        return -float(report["development_loss"])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        return {"train": StartError.of(float(np.log(TAGS + 1)))}


def batches_by_length(examples: SyntaxExamples, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """All examples in batches of about one length, in random order; those that read one sentence are together.

    Args:
        examples: any.
        size: of a batch.
        rng: draws.
    """
    there, read = np.unique(examples.sources, return_inverse=True)
    order = np.argsort(rng.permutation(len(there))[read], kind="stable")
    return length_batches(order, [examples.texts.lengths[examples.sources]], size, rng, _POOL)
