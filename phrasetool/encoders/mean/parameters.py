"""The mean of fixed word vectors: its definition and its parameters.

With the known words w_1 .. w_N of a phrase (those that have a vector) and their vectors e:

    phrase         z = (1 / N) sum_i e_i
    carried        Wl z + bl, or z itself where both languages are in one space

A phrase without known words is the zero vector, and so is what it is carried to.
"""

from __future__ import annotations

from dataclasses import dataclass

from phrasetool.encoders.parameter_checks import check_arrays
from phrasetool.phrases import FloatArray


@dataclass(frozen=True)
class MeanParameters:
    """The parameters of one language, all float32.  V words, n dimensions.

    Attributes:
        word_vectors: shape (V, n); row 0, the unknown word, is never looked at.
        transform, transform_bias: Wl, bl into the other language's space, shapes (n, n) and (n,).
    """

    word_vectors: FloatArray
    transform: FloatArray
    transform_bias: FloatArray

    def __post_init__(self) -> None:
        n = self.word_vectors.shape[-1]
        shapes = {"word_vectors": (len(self.word_vectors), n), "transform": (n, n), "transform_bias": (n,)}
        check_arrays(self.arrays(), shapes)

    @property
    def dimension(self) -> int:
        """n, the dimension of a word vector and of a phrase vector."""
        return int(self.word_vectors.shape[1])

    def arrays(self) -> dict[str, FloatArray]:
        """Name -> array, in the order of the definition."""
        return {name: getattr(self, name) for name in ("word_vectors", "transform", "transform_bias")}
