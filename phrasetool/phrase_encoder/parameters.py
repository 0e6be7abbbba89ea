"""Definitions and parameters of the three encoders of phrases.

Each definition is implemented three times: by a network (`rae_network`, `networks`: batched and differentiable, for
training), by kernels (for scoring) and by `tests/naive.py` (slow and obvious, the reference for the other two).

**Recursive auto-encoder (RAE).**  Zhang et al. (2014), Eq. 2-5, after Socher et al. (2011).  With f = tanh and children
c1, c2 of dimension n:

    parent           p          = f(W1 [c1; c2] + b1)
    reconstruction   [c1'; c2'] = f(W2 p + b2)
    error            E_rec      = 1/2 ||[c1; c2] - [c1'; c2']||^2

The tree of a phrase is built greedily: at every step the adjacent pair with the smallest E_rec is merged, the
leftmost one on a tie, until one vector is left.  A one-word phrase is its word vector, a phrase without words the
zero vector.  E_rec of a phrase is the sum over its nodes.

A phrase is mapped into the other language's space by the transformation f(Wl p + bl) (Eq. 9).

**Gated mean-max attention encoder.**  Zhang, Wu, Li and Zhang, "Gated Mean-Max Autoencoder for Paragraph
Representations", Eq. 1-14, the encoder's half.  With words w_1 .. w_N and, after them, the end of the sequence, w word
units, m hidden units and h heads:

    input          x_t = e_t + p_t                                     p_t sinusoidal, t from 1 (Eq. 6-7)
    attention      a_t = concat_i softmax(q_ti K_i' / sqrt(m/h)) V_i   no residual, no output matrix (Eq. 1-5, 8)
    norm           b_t = LN(a_t)                                                             (Eq. 9)
    feed-forward   f_t = max(0, W1 b_t + b1) -> W2 . + b2                                    (Eq. 10)
    hidden         h_t = LN(f_t + b_t)                                                       (Eq. 11)
    phrase         z = [max_t h_t; mean_t h_t], n = 2 m                                      (Eq. 12-14)

A phrase without words is the zero vector.  A phrase is mapped into the other language's space by tanh(Wl z + bl), as
in BRAE.

**Mean of fixed word vectors.**  With the known words w_1 .. w_N of a phrase (those that have a vector) and their
vectors e:

    phrase         z = (1 / N) sum_i e_i
    transformed    Wl z + bl, or z itself where both languages are in one space

A phrase without known words is the zero vector, and so is its transformation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from phrasetool.models.saved_model import check_arrays
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

        The standard deviation, 1/sqrt(number of inputs), keeps the length of vectors from node to node.

        Args:
            word_vectors: shape (V, n), used unchanged.
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
        """Start near averaging: a parent is the mean of its children, and reconstructs both as itself.

        W1 = [I/2 I/2], W2 = [I; I], Wl = I, each plus a tenth of what `random` draws.

        Args:
            word_vectors: shape (V, n), used unchanged.
            rng: source of randomness.
        """
        drawn = cls.random(word_vectors, rng)
        tenth = np.float32(0.1)
        identity = np.eye(drawn.dimension, dtype=np.float32)
        return replace(
            drawn,
            compose=np.hstack([identity, identity]) / 2 + tenth * drawn.compose,
            reconstruct=np.vstack([identity, identity]) + tenth * drawn.reconstruct,
            transform=identity + tenth * drawn.transform,
        )

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays by name, in the order of the definition."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class MeanMaxParameters:
    """The parameters of one language, all float32.  V words, w word units, m hidden units, d feed-forward units.

    Attributes:
        word_vectors: W_e, shape (V, w); row 0 is the unknown word.
        end: vector of the end of the sequence, shape (w,).
        query, key, value: matrices of all heads, concatenated, each of shape (m, w).
        attention_gain, attention_bias: of the first layer norm, shape (m,).
        widen, widen_bias: W1, b1, shapes (d, m) and (d,).
        narrow, narrow_bias: W2, b2, shapes (m, d) and (m,).
        hidden_gain, hidden_bias: of the second layer norm, shape (m,).
        transform, transform_bias: Wl, bl into the other language's space, shapes (2m, 2m) and (2m,).
    """

    word_vectors: FloatArray
    end: FloatArray
    query: FloatArray
    key: FloatArray
    value: FloatArray
    attention_gain: FloatArray
    attention_bias: FloatArray
    widen: FloatArray
    widen_bias: FloatArray
    narrow: FloatArray
    narrow_bias: FloatArray
    hidden_gain: FloatArray
    hidden_bias: FloatArray
    transform: FloatArray
    transform_bias: FloatArray

    def __post_init__(self) -> None:
        w, m, d = self.word_vectors.shape[-1], self.query.shape[0], self.widen.shape[0]
        shapes = {
            "word_vectors": (len(self.word_vectors), w), "end": (w,),
            "query": (m, w), "key": (m, w), "value": (m, w), "attention_gain": (m,), "attention_bias": (m,),
            "widen": (d, m), "widen_bias": (d,), "narrow": (m, d), "narrow_bias": (m,),
            "hidden_gain": (m,), "hidden_bias": (m,), "transform": (2 * m, 2 * m), "transform_bias": (2 * m,),
        }  # fmt: skip
        check_arrays(self.arrays(), shapes)

    @property
    def hidden(self) -> int:
        """m, the number of hidden units."""
        return int(self.query.shape[0])

    @property
    def dimension(self) -> int:
        """n = 2 m, the dimension of a phrase vector."""
        return 2 * self.hidden

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays by name, in the order of the definition."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class MeanParameters:
    """The parameters of one language, all float32.  V words, n dimensions.

    Attributes:
        word_vectors: shape (V, n); row 0, the unknown word, is never used.
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
        """Return the arrays by name, in the order of the definition."""
        return {name: getattr(self, name) for name in ("word_vectors", "transform", "transform_bias")}
