"""What scoring encoders share: phrases are encoded in batches of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases


class BatchedEncoder(ABC):
    """Cuts phrases into batches, so that memory does not grow with their number.

    Args:
        vocabulary_size: word ids are below it.
        dimension: n.
    """

    # Positions of a batch at most, if it has more than one phrase; and those of a phrase beside its words.
    batch_positions: int
    more_positions: ClassVar[int] = 0

    def __init__(self, vocabulary_size: int, dimension: int) -> None:
        self._vocabulary_size = vocabulary_size
        self._dimension = dimension

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Encode phrases.

        Args:
            phrases: N phrases; every word id is below the vocabulary size.
            unit: scale the vectors to length one (zero vectors stay zero).

        Returns:
            The phrase vectors and their transformations, both float32 of shape (N, n).

        Raises:
            ValueError: a word id is outside the vocabulary.
        """
        words, offsets = np.ascontiguousarray(phrases.words, np.int32), phrases.offsets
        if len(words) and not 0 <= int(words.min()) <= int(words.max()) < self._vocabulary_size:
            raise ValueError("a word id is outside the vocabulary")
        encoded = np.empty((len(phrases), self._dimension), np.float32)
        transformed = np.empty_like(encoded)
        starts = offsets + self.more_positions * np.arange(len(offsets))
        first = 0
        while first < len(phrases):
            limit = starts[first] + self.batch_positions
            last = max(first + 1, int(np.searchsorted(starts, limit, side="right")) - 1)
            self._encode_batch(
                offsets[first : last + 1] - offsets[first],
                words[offsets[first] : offsets[last]],
                unit,
                encoded[first:last],
                transformed[first:last],
            )
            first = last
        return encoded, transformed

    @abstractmethod
    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        """Fill `encoded` and `transformed`, each of shape (B, n), for B phrases."""
