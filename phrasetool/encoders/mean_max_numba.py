"""The gated mean-max encoder for scoring on CPU.

The encoder keeps the products of the words that it has met, within a bounded memory; the phrases of a table share few
words.  All else belongs to one phrase, for attention makes every position depend on all others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.encoders.dense_kernels import GROUP, pack, pack_bias
from phrasetool.encoders.mean_max import LONGEST, MeanMaxParameters, positions
from phrasetool.encoders.mean_max_kernels import attend, enter_words, feed_forward, pool, project, transform
from phrasetool.errors import LengthError
from phrasetool.phrases import FloatArray, Phrases


class PackedMeanMax:
    """Parameters laid out for the kernels, with the products of the positions and of the end.

    Read-only after construction, so any number of encoders (one per thread) can share it.

    Args:
        parameters: of one language.
        heads: h.

    Raises:
        ValueError: the heads do not divide the hidden units.
    """

    def __init__(self, parameters: MeanMaxParameters, heads: int) -> None:
        m = parameters.hidden
        if heads < 1 or m % heads:
            raise ValueError(f"{heads} heads cannot share {m} hidden units")
        size = m // heads

        def alternate(matrix: FloatArray) -> FloatArray:
            return matrix.reshape(heads, size, -1).transpose(1, 0, 2).reshape(m, -1)

        query = parameters.query / np.float32(size**0.5)
        self.dimension = parameters.dimension
        self.heads = heads
        self.word_vectors = np.ascontiguousarray(parameters.word_vectors)
        self.project = pack(np.vstack([alternate(query), alternate(parameters.key), parameters.value]))
        self.end_products = self._products(parameters.end[None])[0]
        self.position_products = self._products(positions(LONGEST + 1, len(parameters.end)))
        self.attention_norm = parameters.attention_gain, parameters.attention_bias
        self.widen, self.widen_bias = pack(parameters.widen), pack_bias(parameters.widen_bias)
        self.narrow, self.narrow_bias = pack(parameters.narrow), pack_bias(parameters.narrow_bias)
        self.hidden_norm = parameters.hidden_gain, parameters.hidden_bias
        self.transform, self.transform_bias = pack(parameters.transform), pack_bias(parameters.transform_bias)

    def _products(self, vectors: FloatArray) -> FloatArray:
        products = np.empty((len(vectors), 3 * self.dimension // 2), np.float32)
        project(np.arange(len(vectors), dtype=np.int32), vectors, self.project, products)
        return products

    def encoder(self, node_capacity: int) -> MeanMaxPhraseEncoder:
        """An encoder for one thread; see `MeanMaxPhraseEncoder`."""
        return MeanMaxPhraseEncoder(self, node_capacity)


class MeanMaxPhraseEncoder:
    """Encodes phrases on CPU.  Not for use by two threads at once; threads share a `PackedMeanMax` instead.

    Args:
        packed: the parameters.
        node_capacity: vectors of m units kept at most (a word has three: query, key and value).  When the words of
            the next batch might not fit, all are forgotten, which costs time and never changes a result.
    """

    # Words and ends of a batch; room for the longest phrase.
    _BATCH_POSITIONS = 1 << 10

    def __init__(self, packed: PackedMeanMax, node_capacity: int = 1 << 16) -> None:
        m = packed.dimension // 2
        self.packed = packed
        capacity = max(min(node_capacity // 3, len(packed.word_vectors)), self._BATCH_POSITIONS)
        self._products = np.empty((capacity, 3 * m), np.float32)
        self._word_rows = np.full(len(packed.word_vectors), -1, np.int32)
        self._state = np.zeros(1, np.int64)
        self._rows = np.zeros((self._BATCH_POSITIONS + GROUP, m), np.float32)

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Encode phrases.

        Args:
            phrases: N phrases; every word id is below the vocabulary size.
            unit: scale the vectors to length one (zero vectors stay zero).

        Returns:
            The phrase vectors and their transformations, both float32 of shape (N, n).

        Raises:
            ValueError: a word id is outside the vocabulary, or a phrase has more than `LONGEST` words.
        """
        words, offsets = np.ascontiguousarray(phrases.words, np.int32), phrases.offsets
        if len(words) and not 0 <= int(words.min()) <= int(words.max()) < len(self.packed.word_vectors):
            raise ValueError("a word id is outside the vocabulary")
        longest = int(phrases.lengths.max(initial=0))
        if longest > LONGEST:
            raise LengthError(f"a phrase of {longest} words is longer than the {LONGEST} that mean-max can encode")
        encoded = np.empty((len(phrases), self.packed.dimension), np.float32)
        transformed = np.empty_like(encoded)
        starts = offsets + np.arange(len(offsets))
        first = 0
        while first < len(phrases):
            limit = starts[first] + self._BATCH_POSITIONS
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

    def _make_room(self, words: int) -> None:
        if self._state[0] + words > len(self._products):
            self._word_rows.fill(-1)
            self._state[0] = 0

    def _encode_batch(
        self,
        offsets: npt.NDArray[np.int64],
        words: npt.NDArray[np.int32],
        unit: bool,
        encoded: FloatArray,
        transformed: FloatArray,
    ) -> None:
        packed = self.packed
        self._make_room(len(words))
        rows = enter_words(words, packed.word_vectors, packed.project, self._products, self._word_rows, self._state)
        count = attend(
            offsets, rows, self._products, packed.end_products, packed.position_products, packed.heads,
            *packed.attention_norm, self._rows,
        )  # fmt: skip
        feed_forward(
            self._rows, count, packed.widen, packed.widen_bias, packed.narrow, packed.narrow_bias, *packed.hidden_norm
        )
        pool(offsets, self._rows, encoded)
        transform(offsets, packed.transform, packed.transform_bias, unit, encoded, transformed)
