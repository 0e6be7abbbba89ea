"""The recursive auto-encoder (RAE): its definition and its parameters.

Zhang et al. (2014), Eq. 2-5, after Socher et al. (2011).  With f = tanh and children c1, c2 of dimension n:

    parent           p          = f(W1 [c1; c2] + b1)
    reconstruction   [c1'; c2'] = f(W2 p + b2)
    error            E_rec      = 1/2 ||[c1; c2] - [c1'; c2']||^2

The tree of a phrase is built greedily: at every step the adjacent pair with the smallest E_rec is merged, the
leftmost one on a tie, until one vector is left.  A one-word phrase is its word vector, a phrase without words the
zero vector.  E_rec of a phrase is the sum over its nodes.

A phrase is carried into the other language's space by the transformation f(Wl p + bl) (Eq. 9).

The definition is executed three times: `module` (batched, differentiable, for training), `kernels` (for
scoring) and `tests/naive.py` (slow and obvious, the oracle of the other two).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from phrasetool.encoders.parameter_checks import check_arrays
from phrasetool.phrases import FloatArray


@dataclass(frozen=True)
class RaeParameters:
    """The parameters of one language, all float32.  V is the vocabulary size, n the dimension.

    Attributes:
        word_vectors: L, shape (V, n); row 0 is the unknown word.
        compose: W1, shape (n, 2n).
        compose_bias: b1, shape (n,).
        reconstruct: W2, shape (2n, n).
        reconstruct_bias: b2, shape (2n,).
        transform: Wl, shape (n, n), into the other language's space.
        transform_bias: bl, shape (n,).
    """

    word_vectors: FloatArray
    compose: FloatArray
    compose_bias: FloatArray
    reconstruct: FloatArray
    reconstruct_bias: FloatArray
    transform: FloatArray
    transform_bias: FloatArray

    def __post_init__(self) -> None:
        n = self.dimension
        shapes = {
            "word_vectors": (len(self.word_vectors), n),
            "compose": (n, 2 * n),
            "compose_bias": (n,),
            "reconstruct": (2 * n, n),
            "reconstruct_bias": (2 * n,),
            "transform": (n, n),
            "transform_bias": (n,),
        }
        check_arrays(self.arrays(), shapes)

    @property
    def dimension(self) -> int:
        """n, the dimension of every vector."""
        return int(self.word_vectors.shape[-1])

    @classmethod
    def random(cls, word_vectors: FloatArray, rng: np.random.Generator) -> RaeParameters:
        """Draw W1, W2, Wl from a normal distribution (section 3.3.3 of the paper); biases are zero.

        The standard deviation, 1/sqrt(number of inputs), keeps the size of a vector from node to node.

        Args:
            word_vectors: shape (V, n), used as they are.
            rng: source of randomness.
        """
        n = word_vectors.shape[1]

        def normal(rows: int, columns: int) -> FloatArray:
            return rng.normal(0.0, columns**-0.5, (rows, columns)).astype(np.float32)

        return cls(
            np.ascontiguousarray(word_vectors, np.float32),
            normal(n, 2 * n),
            np.zeros(n, np.float32),
            normal(2 * n, n),
            np.zeros(2 * n, np.float32),
            normal(n, n),
            np.zeros(n, np.float32),
        )

    @classmethod
    def averaging(cls, word_vectors: FloatArray, rng: np.random.Generator) -> RaeParameters:
        """Start near a model that makes sense: a parent is the mean of its children, which it hands back.

        W1 = [I/2 I/2], W2 = [I; I], Wl = I, each plus a tenth of what `random` draws.

        Args:
            word_vectors: shape (V, n), used as they are.
            rng: source of randomness.
        """
        drawn = cls.random(word_vectors, rng)
        tenth = np.float32(0.1)
        one = np.eye(drawn.dimension, dtype=np.float32)
        return replace(
            drawn,
            compose=np.hstack([one, one]) / 2 + tenth * drawn.compose,
            reconstruct=np.vstack([one, one]) + tenth * drawn.reconstruct,
            transform=one + tenth * drawn.transform,
        )

    def arrays(self) -> dict[str, FloatArray]:
        """Name -> array, in the order of the definition."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
