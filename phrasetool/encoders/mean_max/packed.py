"""The gated mean-max encoder for scoring on CPU.

The encoder keeps the products of the words that it has met, within a bounded memory; the phrases of a table share few
words.  All else belongs to one phrase, for attention makes every position depend on all others.
"""

from __future__ import annotations

import numpy as np

from phrasetool.encoders.batched import BatchedEncoder
from phrasetool.encoders.dense_kernels import GROUP, pack, pack_bias, project, transform
from phrasetool.encoders.mean_max.kernels import attend, enter_words, feed_forward, pool
from phrasetool.encoders.mean_max.parameters import MeanMaxParameters
from phrasetool.nn.positions import LONGEST, check_lengths, positions
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases


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
        everyone = np.arange(len(vectors))
        project(everyone, vectors, self.project, products, everyone)
        return products

    def encoder(self, node_capacity: int) -> MeanMaxPhraseEncoder:
        """An encoder for one thread; see `MeanMaxPhraseEncoder`."""
        return MeanMaxPhraseEncoder(self, node_capacity)


class MeanMaxPhraseEncoder(BatchedEncoder):
    """Encodes phrases on CPU.  Not for use by two threads at once; threads share a `PackedMeanMax` instead.

    Args:
        packed: the parameters.
        node_capacity: vectors of m units kept at most (a word has three: query, key and value).  When the words of
            the next batch might not fit, all are forgotten, which costs time and never changes a result.
    """

    # Room for the longest phrase; every phrase has an end beside its words.
    batch_positions = 1 << 10
    more_positions = 1

    def __init__(self, packed: PackedMeanMax, node_capacity: int = 1 << 16) -> None:
        super().__init__(len(packed.word_vectors), packed.dimension)
        m = packed.dimension // 2
        self.packed = packed
        capacity = max(min(node_capacity // 3, len(packed.word_vectors)), self.batch_positions)
        self._products = np.empty((capacity, 3 * m), np.float32)
        self._word_rows = np.full(len(packed.word_vectors), -1, np.int32)
        self._state = np.zeros(1, np.int64)
        self._rows = np.zeros((self.batch_positions + GROUP, m), np.float32)

    def encode(self, phrases: Phrases, unit: bool = True) -> tuple[FloatArray, FloatArray]:
        """Encode phrases; see `BatchedEncoder.encode`.

        Raises:
            ValueError: a word id is outside the vocabulary, or a phrase has more than `LONGEST` words.
        """
        check_lengths(phrases.lengths)
        return super().encode(phrases, unit)

    def _make_room(self, words: int) -> None:
        if self._state[0] + words > len(self._products):
            self._word_rows.fill(-1)
            self._state[0] = 0

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
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
