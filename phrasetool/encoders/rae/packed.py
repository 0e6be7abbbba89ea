"""The recursive auto-encoder for scoring on CPU.

Phrases of a table overlap: `of the`, or the tree `(of the) house`, occurs in thousands of them.  Phrases are encoded in
batches of some thousand words, whose nodes are shared.  To keep nodes for the next batch would save computing a third
of them, and take as long: they would not stay in the processor's cache.
"""

from __future__ import annotations

import numpy as np

from phrasetool.encoders.batched import BatchedEncoder
from phrasetool.encoders.dense_kernels import pack, pack_bias, project
from phrasetool.encoders.rae.kernels import Nodes, ScoringWeights, TreeWeights, encode_batch
from phrasetool.encoders.rae.parameters import RaeParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array

# A phrase of m words needs m nodes for them, m - 1 pairs at first and at most two more after each of m - 3 merges.
_NODES_OF_WORD = 4


class PackedRae:
    """Parameters laid out for the kernels, with the products W1 x of every vocabulary word.

    Read-only after construction, so any number of encoders (one per thread) can share it.
    """

    def __init__(self, parameters: RaeParameters) -> None:
        n = parameters.dimension
        self.dimension = n
        word_vectors = np.ascontiguousarray(parameters.word_vectors)
        self.tree = tree = TreeWeights.packed(
            parameters.compose, parameters.compose_bias, parameters.reconstruct, parameters.reconstruct_bias
        )
        everyone = np.arange(len(word_vectors))
        word_products = np.empty((len(everyone), 2 * n), np.float32)
        project(everyone, word_vectors, tree.compose, word_products, everyone)
        self.weights = ScoringWeights(
            word_vectors, word_products, pack(parameters.transform), pack_bias(parameters.transform_bias)
        )

    def encoder(self, node_capacity: int) -> RaeEncoder:
        """An encoder for one thread; see `RaeEncoder`."""
        return RaeEncoder(self, node_capacity)


class RaeEncoder(BatchedEncoder):
    """Encodes phrases on CPU.  Not for use by two threads at once; threads share a `PackedRae` instead.

    Args:
        packed: the parameters.
        node_capacity: nodes (words and interned pairs) that there is room for, unless one phrase needs more; a node
            takes about 12 n + 30 bytes.  Less than 2^15 makes batches smaller, which never changes a result.
    """

    batch_positions = 1 << 13

    def __init__(self, packed: PackedRae, node_capacity: int = 1 << 16) -> None:
        super().__init__(len(packed.weights.word_vectors), packed.dimension)
        self.packed = packed
        self.batch_positions = min(self.batch_positions, max(node_capacity // _NODES_OF_WORD, 1))
        self._nodes = self._room(self.batch_positions)

    def _room(self, words: int) -> Nodes:
        return Nodes.with_room(_NODES_OF_WORD * words, len(self.packed.weights.word_vectors), self.packed.dimension)

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        if _NODES_OF_WORD * len(words) > len(self._nodes.vectors):
            self._nodes = self._room(len(words))
        packed = self.packed
        encode_batch(offsets, words, unit, packed.tree, packed.weights, self._nodes, encoded, transformed)
        self._nodes.forget()
