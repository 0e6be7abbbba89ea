"""Trains the vectors that sentences are searched for by.

A source is to be nearer to its target, by cosine, than to the others of a large batch, and a target to its source.
Vectors start near zero, so that units which training never saw say little beside those that it did, but for names,
numbers and links that stand on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from phrasetool.pair_classifier.batch_negatives import epoch_batches
from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.pair_classifier.pair_losses import contrast_loss
from phrasetool.pair_classifier.search_vectors import summed
from phrasetool.pair_classifier.sentence_units import lexicon_units, sentence_units
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.phrases import Int64Array
from phrasetool.train.checks import StartError
from phrasetool.train.loop import EpochTrainer, LearntParameters, Tick
from phrasetool.train.text_pairs import TextPairs

# Numbers that units share by chance are few beside them.
BUCKETS = 1 << 17
# Pairs of a batch: the more others there are, the more there is to tell apart.
_BATCH = 1024
_TEMPERATURE = 0.1
_SCALE, _TABLE_RATE, _MAP_RATE = 0.01, 2e-3, 1e-3
_TABLE, _MAP = "table_optimizer.", "map_optimizer."


@dataclass(frozen=True)
class SearchReport:
    """One line of the log.

    Attributes:
        epoch: from 1.
        loss: mean of an update over the epoch.
    """

    epoch: int
    loss: float


class SearchTrainer(EpochTrainer[SearchReport]):
    """Trains vectors of units.

    Args:
        pairs: what to learn from, two different ones at least.
        settings: their size, epochs and seed.
    """

    def __init__(self, pairs: TextPairs, settings: ParallelSettings) -> None:
        self._pairs = len(pairs)
        self._known = KnownTranslations(pairs.sources, pairs.targets)
        sides = (pairs.sources, pairs.source_words), (pairs.targets, pairs.target_words)
        self._sides = [(texts, lexicon_units(words, BUCKETS)) for texts, words in sides]
        rng = np.random.default_rng([settings.seed, 7])
        size = settings.search_units
        drawn = rng.standard_normal((BUCKETS, size), np.float32) * np.float32(_SCALE)
        self._table = nn.Parameter(torch.from_numpy(drawn))
        # Turns all vectors at once, those that no pair has, too.
        self._map = nn.Parameter(torch.eye(size))
        optimizers = {
            _TABLE: torch.optim.SparseAdam([self._table], lr=_TABLE_RATE),
            _MAP: torch.optim.Adam([self._map], lr=_MAP_RATE),
        }
        learnt = LearntParameters({"table": self._table, "map": self._map}, optimizers)
        super().__init__(learnt, (settings.seed, 8), settings.search_epochs, -(-len(pairs) // _BATCH))

    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """An epoch; the mean loss of an update."""
        batches = epoch_batches(self._pairs, _BATCH, rng)
        total = 0.0
        for batch in batches:
            total += self._update(batch)
            tick(len(batch))
        return total / len(batches)

    def _report(self, loss: float) -> SearchReport:
        return SearchReport(self.epoch, loss)

    def vectors(self) -> npt.NDArray[np.float16]:
        """What `SearchVectors` takes."""
        with torch.no_grad():
            return (self._table @ self._map).numpy().astype(np.float16)

    def _update(self, batch: Int64Array) -> float:
        """One step of Adam; the loss."""
        sources, targets = (
            summed(sentence_units(texts.select(batch), lexicon), self._table, sparse=True) @ self._map
            for texts, lexicon in self._sides
        )
        loss = contrast_loss(sources, targets, torch.from_numpy(self._known.among(batch)), _TEMPERATURE)
        self.learnt.step(loss)
        return float(loss.detach())

    def start_errors(self) -> dict[str, StartError]:
        """The loss of guessing before the first update."""
        return {"train": StartError.of(float(np.log(min(_BATCH, self._pairs))))}
