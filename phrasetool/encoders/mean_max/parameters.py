"""The gated mean-max attention encoder: its definition and its parameters.

Zhang, Wu, Li and Zhang, "Gated Mean-Max Autoencoder for Paragraph Representations", Eq. 1-14, the encoder's half.
With words w_1 .. w_N and, after them, the end of the sequence, w word units, m hidden units and h heads:

    input          x_t = e_t + p_t                                     p_t sinusoidal, t from 1 (Eq. 6-7)
    attention      a_t = concat_i softmax(q_ti K_i' / sqrt(m/h)) V_i   no residual, no output matrix (Eq. 1-5, 8)
    norm           b_t = LN(a_t)                                                             (Eq. 9)
    feed-forward   f_t = max(0, W1 b_t + b1) -> W2 . + b2                                    (Eq. 10)
    hidden         h_t = LN(f_t + b_t)                                                       (Eq. 11)
    phrase         z = [max_t h_t; mean_t h_t], n = 2 m                                      (Eq. 12-14)

A phrase without words is the zero vector.  A phrase is carried into the other language's space by tanh(Wl z + bl), as
in BRAE.

The definition is executed three times: `module` (batched, differentiable, for training), `kernels` (for
scoring) and `tests/naive.py` (slow and obvious, the oracle of the other two).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from phrasetool.encoders.parameter_checks import check_arrays
from phrasetool.phrases import FloatArray


@dataclass(frozen=True)
class MeanMaxParameters:
    """The parameters of one language, all float32.  V words, w word units, m hidden units, d feed-forward units.

    Attributes:
        word_vectors: W_e, shape (V, w); row 0 is the unknown word.
        end: vector of the end of the sequence, shape (w,).
        query, key, value: of all heads, one after another, each of shape (m, w).
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
        """m, the hidden units."""
        return int(self.query.shape[0])

    @property
    def dimension(self) -> int:
        """n = 2 m, the dimension of a phrase vector."""
        return 2 * self.hidden

    def arrays(self) -> dict[str, FloatArray]:
        """Name -> array, in the order of the definition."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
