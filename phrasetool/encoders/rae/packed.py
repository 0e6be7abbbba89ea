"""The recursive auto-encoder for scoring on CPU.

Phrases of a table overlap: `of the`, or the tree `(of the) house`, occurs in thousands of them.  The encoder therefore
keeps the nodes it has computed between calls, within a bounded memory.
"""

from __future__ import annotations

import numpy as np

from phrasetool.encoders.batched import BatchedEncoder
from phrasetool.encoders.dense_kernels import pack, pack_bias
from phrasetool.encoders.rae.kernels import build_trees, compute_products, enter_words, finish
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array


class PackedRae:
    """Parameters laid out for the kernels, with the products W1 x of every vocabulary word.

    Read-only after construction, so any number of encoders (one per thread) can share it.
    """

    def __init__(self, parameters: RaeParameters) -> None:
        n = parameters.dimension
        self.dimension = n
        self.word_vectors = np.ascontiguousarray(parameters.word_vectors)
        self.compose = pack(np.vstack([parameters.compose[:, :n], parameters.compose[:, n:]]))
        self.compose_bias = parameters.compose_bias
        self.reconstruct = pack(parameters.reconstruct)
        self.reconstruct_bias = pack_bias(parameters.reconstruct_bias)
        self.transform = pack(parameters.transform)
        self.transform_bias = pack_bias(parameters.transform_bias)
        everyone = np.arange(len(self.word_vectors))
        self.word_products = np.empty((len(everyone), 2 * n), np.float32)
        compute_products(everyone, len(everyone), self.word_vectors, self.word_products, self.compose)

    def encoder(self, node_capacity: int) -> RaeEncoder:
        """An encoder for one thread; see `RaeEncoder`."""
        return RaeEncoder(self, node_capacity)


class RaeEncoder(BatchedEncoder):
    """Encodes phrases on CPU.  Not for use by two threads at once; threads share a `PackedRae` instead.

    Args:
        packed: the parameters.
        node_capacity: nodes (words and interned pairs) kept at most; a node takes about 12 n + 30 bytes.  When the
            next batch might not fit, all are forgotten, which costs time and never changes a result.
    """

    batch_positions = 1 << 13

    def __init__(self, packed: PackedRae, node_capacity: int = 1 << 16) -> None:
        super().__init__(len(packed.word_vectors), packed.dimension)
        self.packed = packed
        self._word_nodes = np.full(len(packed.word_vectors), -1, np.int32)
        self._allocate(max(node_capacity, 4 * self.batch_positions))

    def _allocate(self, capacity: int) -> None:
        n = self.packed.dimension
        self._capacity = capacity
        self._vectors = np.empty((capacity, n), np.float32)
        self._products = np.empty((capacity, 2 * n), np.float32)
        self._errors = np.empty(capacity, np.float32)
        self._children = np.empty((capacity, 2), np.int32)
        self._has_products = np.empty(capacity, np.uint8)
        self._slots = np.empty(1 << (2 * capacity - 1).bit_length(), np.int32)
        self._state = np.zeros(1, np.int64)
        self._forget()

    def _forget(self) -> None:
        self._slots.fill(-1)
        self._has_products.fill(0)
        self._word_nodes.fill(-1)
        self._state[0] = 0

    def _make_room(self, words: int) -> None:
        # A phrase of m words needs m words, m - 1 pairs at first and at most two more after each of m - 3 merges.
        needed = 4 * words
        if needed > self._capacity:
            self._allocate(needed)
        elif self._state[0] + needed > self._capacity:
            self._forget()

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        packed = self.packed
        self._make_room(len(words))
        computed = int(self._state[0])
        items = enter_words(
            words, packed.word_vectors, packed.word_products, self._vectors, self._products, self._children,
            self._has_products, self._word_nodes, self._state,
        )  # fmt: skip
        lengths = build_trees(
            offsets, items, computed, packed.reconstruct, packed.reconstruct_bias, packed.compose, packed.compose_bias,
            self._vectors, self._products, self._errors, self._children, self._has_products, self._slots, self._state,
        )  # fmt: skip
        finish(
            offsets, items, lengths, self._vectors, self._products, packed.compose_bias,
            packed.transform, packed.transform_bias, unit, encoded, transformed,
        )  # fmt: skip
