"""Train a syntactic encoder, with a checkpoint after each epoch; the best on a development set is kept.

On a CPU a seed fixes the weights for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from phrasetool.encoders.torch_precision import products_in
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.syntax.syntax_network import SyntaxNetwork
from phrasetool.syntax.syntax_shape import END, TAGS, SyntaxShape
from phrasetool.training.divergence import StartError
from phrasetool.training.resumable import optimizer_tensors, restore_optimizer
from phrasetool.training.syntax.syntax_examples import SyntaxExamples
from phrasetool.training.syntax.syntax_settings import SyntaxSettings

_OPTIMIZER, _BEST = "optimizer.", "best."
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


class SyntaxTrainer:
    """Trains an encoder with its decoder.

    Args:
        examples: what to learn from.
        development: decides which epoch is kept.
        shape: the dimensions.
        arrays: initial values.
        settings: how.
        device: where; CPU by default.

    Attributes:
        epoch: epochs done.
        best: the report of the best epoch.
    """

    def __init__(
        self, examples: SyntaxExamples, development: SyntaxExamples, shape: SyntaxShape,
        arrays: Mapping[str, FloatArray], settings: SyntaxSettings, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.examples, self.development, self.settings = examples, development, settings
        self._device = device or torch.device("cpu")
        self.network = SyntaxNetwork(shape, arrays).to(self._device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        self.epoch = 0
        self.best: dict[str, Any] | None = None
        self._updates_an_epoch = -(-len(examples) // settings.batch_size)
        self._kept: dict[str, Tensor] | None = None

    def run(self, tick: Callable[[int], None] = lambda examples: None) -> Iterator[SyntaxReport]:
        """Train to the last epoch, or until patience is at its end; yields after every epoch.

        Args:
            tick: called with the number of examples just seen.
        """
        s = self.settings
        while self.epoch < s.epochs and self.epoch - (self.best or {"epoch": self.epoch})["epoch"] < s.patience:
            # An epoch's draws depend on the seed and its number alone, so that a checkpoint keeps no random state.
            rng = np.random.default_rng([s.seed, self.epoch + 1])
            self.network.seed_dropout(int(rng.integers(2**62)))
            total, tags = 0.0, 0
            for number, batch in enumerate(batches_by_length(self.examples, s.batch_size, rng)):
                loss, count = self._update(batch, self.epoch * self._updates_an_epoch + number)
                total, tags = total + loss * count, tags + count
                tick(len(batch))
            self.epoch += 1
            report = self._report(total / tags)
            if self.best is None or report.development_loss < self.best["development_loss"]:
                self.best = {**report.__dict__}
                self._kept = {name: value.detach().clone() for name, value in self.network.named_parameters()}
            yield report

    def kept(self) -> SyntaxNetwork:
        """The network of the best epoch, on the CPU."""
        if self._kept is not None:
            self._load(self._kept)
        return self.network.cpu()

    def _update(self, batch: Int64Array, done: int) -> tuple[float, int]:
        """One step; the mean loss of a tag, and of how many tags."""
        s = self.settings
        if s.schedule == "linear":
            for group in self.optimizer.param_groups:
                group["lr"] = s.learning_rate * (1 - done / (s.epochs * self._updates_an_epoch))
        self.optimizer.zero_grad()
        with products_in(s.precision, self._device):
            logits, wanted = self._logits(self.examples, batch, s.dropout)
        loss = cross_entropy(logits.float(), wanted, ignore_index=_NOTHING)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), s.clip)
        self.optimizer.step()
        return float(loss.detach()), int((wanted != _NOTHING).sum())

    def _logits(self, examples: SyntaxExamples, batch: Int64Array, dropout: float) -> tuple[Tensor, Tensor]:
        """Logits of the tags of a batch and of what lies behind them, shape (N, 18), and what is wanted, (N,)."""
        # A sentence with several translations, or its own parts of speech, is read once.
        sources, readers = np.unique(examples.sources[batch], return_inverse=True)
        read, written = examples.texts.select(sources), examples.tags.select(examples.targets[batch])
        lengths = torch.from_numpy(read.lengths)
        texts = self._there(read.padded(int(read.lengths.max())))
        tags = self._there(written.padded(int(written.lengths.max()), END))
        given = self._there(readers)
        vectors, last = (part.index_select(0, given) for part in self.network.encode(texts, lengths, dropout))
        logits = self.network.decode(vectors, last, self._there(examples.languages[batch]), tags, dropout)
        wanted = torch.cat([tags, torch.full_like(tags[:, :1], END)], 1)
        behind = np.arange(wanted.shape[1])[None] > written.lengths[:, None]
        wanted[self._there(behind, np.bool_)] = _NOTHING
        return logits.reshape(-1, TAGS + 1), wanted.reshape(-1)

    def _there(self, array: Any, kind: Any = np.int64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, kind)).to(self._device)

    @torch.no_grad()
    def _report(self, loss: float) -> SyntaxReport:
        """What the network is worth after an epoch."""
        there = self.development
        order = np.lexsort((there.sources, there.texts.lengths[there.sources]))
        total, right, tags = 0.0, 0, 0
        for first in range(0, len(order), self.settings.batch_size):
            logits, wanted = self._logits(there, order[first : first + self.settings.batch_size], 0.0)
            total += float(cross_entropy(logits, wanted, ignore_index=_NOTHING, reduction="sum"))
            right += int((logits.argmax(1) == wanted).sum())
            tags += int((wanted != _NOTHING).sum())
        return SyntaxReport(self.epoch, loss, total / tags, right / tags, self.epoch * self._updates_an_epoch)

    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.network.named_parameters():
                value.copy_(tensors[name])

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        return {"train": StartError.of(float(np.log(TAGS + 1)))}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor needed to go on: parameters, the best so far, and optimiser state, on CPU."""
        found = {name: value.detach() for name, value in self.network.named_parameters()}
        found.update({_BEST + name: value for name, value in (self._kept or {}).items()})
        found.update(optimizer_tensors(self.optimizer, _OPTIMIZER))
        return {name: value.cpu().contiguous() for name, value in found.items()}

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        return {"epoch": self.epoch, "best": self.best}

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Go on where `tensors` and `progress` were taken.

        Raises:
            KeyError, RuntimeError, ValueError: they are of other settings or sentences.
        """
        self._load(tensors)
        restore_optimizer(self.optimizer, tensors, _OPTIMIZER)
        self.epoch, self.best = progress["epoch"], progress["best"]
        if self.best is not None:
            names = [name for name, _ in self.network.named_parameters()]
            self._kept = {name: tensors[_BEST + name].to(self._device) for name in names}


def batches_by_length(examples: SyntaxExamples, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """All examples in batches of about one length, in random order; those that read one sentence are together.

    Args:
        examples: any.
        size: of a batch.
        rng: draws.
    """
    there, read = np.unique(examples.sources, return_inverse=True)
    place = rng.permutation(len(there))[read]
    order, lengths = np.argsort(place, kind="stable"), examples.texts.lengths[examples.sources]
    found: list[Int64Array] = []
    for first in range(0, len(order), size * _POOL):
        pool = order[first : first + size * _POOL]
        pool = pool[np.lexsort((place[pool], lengths[pool]))]
        found += [pool[start : start + size] for start in range(0, len(pool), size)]
    return [found[number] for number in rng.permutation(len(found))]
