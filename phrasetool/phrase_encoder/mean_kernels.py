"""Scoring with the mean of word vectors on CPU: its kernels and the packed parameters.

Sums are taken in the order of the words, so what becomes of a phrase depends on nothing but that phrase.
"""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import kernel
from phrasetool.phrase_encoder.dense_kernels import GROUP, PAD, affine, normalise, pack, pack_bias, sum_buffer
from phrasetool.phrase_encoder.encoder import BatchedEncoder
from phrasetool.phrase_encoder.parameters import MeanParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array
from phrasetool.vocabulary import UNKNOWN

_ZERO = np.float32(0.0)


@kernel
def average(offsets: Int64Array, words: Int32Array, vectors: FloatArray, encoded: FloatArray) -> None:
    """encoded[i] = the mean of the vectors of the known words of phrase i; zero if there are none."""
    for phrase in range(len(encoded)):
        row = encoded[phrase]
        for i in range(len(row)):
            row[i] = _ZERO
        known = 0
        for k in range(offsets[phrase], offsets[phrase + 1]):
            word = words[k]
            if word == UNKNOWN:
                continue
            known += 1
            vector = vectors[word]
            for i in range(len(row)):
                row[i] += vector[i]
        if known > 1:
            count = np.float32(known)
            for i in range(len(row)):
                row[i] /= count


@kernel
def carry(weights: FloatArray, bias: FloatArray, unit: bool, encoded: FloatArray, transformed: FloatArray) -> None:
    """transformed = W z + b; zero where z is zero.

    Args:
        weights, bias: W and b, packed.
        unit: scale both vectors of a phrase to length one.
        encoded: the phrase vectors z, shape (B, n).
        transformed: filled, shape (B, n).
    """
    n = encoded.shape[1]
    # Rows a power of two apart would fall on the same places of the cache.
    x = np.zeros((GROUP, n + PAD), np.float32)
    y = np.zeros((GROUP, weights.shape[1]), np.float32)
    buffer = sum_buffer(1, n)
    for first in range(0, len(encoded), GROUP):
        used = min(GROUP, len(encoded) - first)
        for g in range(used):
            x[g, :n] = encoded[first + g]
        affine(weights, bias, x, y)
        for g in range(used):
            phrase = first + g
            something = False
            for i in range(n):
                something = something or encoded[phrase, i] != _ZERO
            if something:
                transformed[phrase] = y[g, :n]
            else:
                transformed[phrase] = _ZERO
            if unit:
                normalise(encoded, phrase, phrase + 1, buffer)
                normalise(transformed, phrase, phrase + 1, buffer)


@kernel
def copy_unit(unit: bool, encoded: FloatArray, transformed: FloatArray) -> None:
    """transformed = encoded, both scaled to length one if `unit`."""
    buffer = sum_buffer(1, encoded.shape[1])
    for phrase in range(len(encoded)):
        if unit:
            normalise(encoded, phrase, phrase + 1, buffer)
        transformed[phrase] = encoded[phrase]


class PackedMean:
    """Parameters laid out for the kernels.  Read-only, so any number of encoders (one per thread) can share it.

    Args:
        parameters: of one language.
        carried: whether the transformation is looked at; else it is the identity.
    """

    def __init__(self, parameters: MeanParameters, carried: bool) -> None:
        self.dimension = parameters.dimension
        self.word_vectors = parameters.word_vectors
        self.carried = carried
        self.transform, self.transform_bias = pack(parameters.transform), pack_bias(parameters.transform_bias)

    def encoder(self, node_capacity: int) -> MeanPhraseEncoder:
        """An encoder; it keeps nothing between calls."""
        return MeanPhraseEncoder(self)


class MeanPhraseEncoder(BatchedEncoder):
    """Encodes phrases on CPU.

    Args:
        packed: the parameters.
    """

    batch_positions = 1 << 14

    def __init__(self, packed: PackedMean) -> None:
        super().__init__(len(packed.word_vectors), packed.dimension)
        self.packed = packed

    def _encode_batch(
        self, offsets: Int64Array, words: Int32Array, unit: bool, encoded: FloatArray, transformed: FloatArray
    ) -> None:
        packed = self.packed
        average(offsets, words, packed.word_vectors, encoded)
        if packed.carried:
            carry(packed.transform, packed.transform_bias, unit, encoded, transformed)
        else:
            copy_unit(unit, encoded, transformed)
