"""The mean of fixed word vectors for scoring on CPU."""

from __future__ import annotations

from phrasetool.encoders.batched import BatchedEncoder
from phrasetool.encoders.dense_kernels import pack, pack_bias
from phrasetool.encoders.mean.kernels import average, carry, copy_unit
from phrasetool.encoders.mean.parameters import MeanParameters
from phrasetool.phrases import FloatArray, Int32Array, Int64Array


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
