"""From a block of entries to two similarities per entry."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.encoders.protocols import PackedEncoder, PhraseEncoder
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import EntryBlock, FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.scoring.calibration import Calibration
from phrasetool.scoring.cosine import pair_cosines
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import UNKNOWN


@dataclass(frozen=True)
class Scores:
    """What is known about N entries.

    Attributes:
        similarities: float32, shape (N, 2), source-to-target first, in [-1, 1]; 0 for a faulty entry.
        opinion: bool, shape (N,); False where the source or the target holds no known word (or the entry is faulty):
            its similarity says nothing, and no rule may prune by it.
        logarithms: whether there is one column instead, shape (N, 1), of natural logarithms of probabilities, NaN where
            nothing is said.
    """

    similarities: FloatArray
    opinion: npt.NDArray[np.bool_]
    logarithms: bool = False


@exact_kernel
def _any_known(offsets: Int64Array, words: Int32Array, known: npt.NDArray[np.bool_]) -> None:
    for i in range(len(known)):
        known[i] = False
        for k in range(offsets[i], offsets[i + 1]):
            if words[k] != UNKNOWN:
                known[i] = True
                break


def has_known_word(phrases: Phrases) -> npt.NDArray[np.bool_]:
    """For each phrase whether at least one of its words is in the vocabulary; shape (N,)."""
    known = np.empty(len(phrases), np.bool_)
    _any_known(phrases.offsets, phrases.words, known)
    return known


class BilingualScorer:
    """Scores entries with an encoder and a transformation per language.

    Threads may call it at the same time: each gets its own encoders, the parameters are shared.

    Args:
        source, target: the parameters of the two languages, laid out for scoring.
        node_capacity: intermediate vectors that an encoder keeps at a time; bounds the memory.
        calibration: maps cosines to similarities; None for cosines.
    """

    def __init__(
        self,
        source: PackedEncoder,
        target: PackedEncoder,
        node_capacity: int = 1 << 16,
        calibration: Calibration | None = None,
    ) -> None:
        if source.dimension != target.dimension:
            raise ValueError(f"dimensions differ: {source.dimension} and {target.dimension}")
        self._packed = (source, target)
        self._capacity = node_capacity
        self._calibration = calibration
        self._local = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has threads of its own.
        return BilingualScorer, (*self._packed, self._capacity, self._calibration)

    def _encoders(self) -> tuple[PhraseEncoder, PhraseEncoder]:
        if not hasattr(self._local, "encoders"):
            source, target = self._packed
            self._local.encoders = source.encoder(self._capacity), target.encoder(self._capacity)
        encoders: tuple[PhraseEncoder, PhraseEncoder] = self._local.encoders
        return encoders

    def encode_sources(self, phrases: Phrases) -> tuple[FloatArray, FloatArray]:
        """Source phrases and their transformations into the target space: float32 (N, n), of length one or zero."""
        return self._encoders()[0].encode(phrases)

    def encode_targets(self, phrases: Phrases) -> tuple[FloatArray, FloatArray]:
        """Target phrases and their transformations into the source space: float32 (N, n), of length one or zero."""
        return self._encoders()[1].encode(phrases)

    def score_pairs(self, sources: Phrases, targets: Phrases) -> FloatArray:
        """Similarities of the pairs (sources[i], targets[i]); float32, shape (N, 2)."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets")
        numbers, distinct = distinct_phrases(sources)
        return self._score(distinct, numbers, targets)

    def _score(self, sources: Phrases, source_index: Int64Array, targets: Phrases) -> FloatArray:
        target_index, distinct = distinct_phrases(targets)
        similarities = pair_cosines(
            source_index, target_index, self.encode_sources(sources), self.encode_targets(distinct)
        )
        self.calibrate(similarities)
        return similarities

    def calibrate(self, cosines: FloatArray) -> None:
        """Turn cosines of one direction into similarities, in place.

        Args:
            cosines: float32, two dimensions, C-contiguous.
        """
        if self._calibration is not None:
            self._calibration.apply(cosines)

    def score(self, block: EntryBlock) -> Scores:
        """Score a block of N entries."""
        group = np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))
        similarities = self._score(block.sources, group, block.targets)
        similarities[block.faulty] = 0
        opinion = has_known_word(block.sources)[group] & has_known_word(block.targets) & ~block.faulty
        return Scores(similarities, opinion)
