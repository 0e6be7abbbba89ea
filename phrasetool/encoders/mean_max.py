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

The definition is executed three times: `mean_max_torch` (batched, differentiable, for training), `mean_max_numba` (for
scoring) and `tests/naive.py` (slow and obvious, the oracle of the other two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from phrasetool.encoders.parameter_checks import check_arrays
from phrasetool.errors import LengthError
from phrasetool.options import option
from phrasetool.phrases import FloatArray, Int64Array, Phrases

if TYPE_CHECKING:
    from phrasetool.encoders.kind import EncoderModule, PackedEncoder

# Words of the longest phrase; attention takes memory with the square of it.
LONGEST = 511
# Added to the variance by layer normalisation.
NORM_EPSILON = 1e-5
LAYERS = ("fixed", "trained")
# Random phrases that tell where vectors lie at the start, and the longest of them.
_PROBES, _PROBE_WORDS = 1000, 5


def check_lengths(lengths: Int64Array) -> None:
    """Refuse what is too long to encode.

    Args:
        lengths: words of each phrase.

    Raises:
        LengthError: one has more than `LONGEST`.
    """
    longest = int(lengths.max(initial=0))
    if longest > LONGEST:
        raise LengthError(f"a phrase of {longest} words is longer than the {LONGEST} that mean-max can encode")


def positions(count: int, word_units: int) -> FloatArray:
    """Sinusoidal positions of the words 1 .. count (Eq. 6-7); float32, shape (count, word_units)."""
    t = np.arange(1, count + 1)[:, None]
    even = np.arange(0, word_units, 2)
    angles = t / 10000 ** (even / word_units)
    table = np.empty((count, word_units))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : word_units // 2])
    return table.astype(np.float32)


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


@dataclass(frozen=True)
class MeanMax:
    """The gated mean-max attention encoder, as `--encoder mean-max`.

    Attributes:
        word_units: w.
        heads: h; must divide the hidden units, half the dimension.
        feed_forward: d; 0 for as many as hidden units.
        dropout: share of components dropped in training, of the input and of what each layer gives.
        layers: `fixed`: attention, feed-forward and norms stay as they are at the start, and word vectors and
            transformations alone learn; or `trained`.

    Raises:
        ValueError: an option is out of range.
    """

    word_units: int = option(128, "Size of a word vector.")
    heads: int = option(4, "Attention heads; must divide half the dimension.")
    feed_forward: int = option(0, "Units of the feed-forward layer; 0: half the dimension.")
    # The paper's 0.2 is for texts.  With phrases, what is dropped of the positions, of amplitude 1, drowns the words.
    dropout: float = option(0.0, "Share of components dropped in training.")
    layers: str = option(
        "fixed",
        "fixed: word vectors and transformations alone learn; or trained, which wants smaller steps (0.001) from "
        "smaller vectors (--vector-scale 0.1) and a loss that sees both languages learn (in-batch).",
    )

    name: ClassVar[str] = "mean-max"
    summary: ClassVar[str] = "self-attention, then the maximum and the mean over the words"
    label: ClassVar[str] = "mean-max"
    reconstructs: ClassVar[bool] = False
    # What learns are word vectors, spread out at first and fast.  Layers that learn are no better at this dimension,
    # worse at telling similar phrases apart, and in co-training, where nothing parts phrases, make all of them alike.
    defaults: ClassVar[Mapping[str, Any]] = {
        "dimension": 512, "alpha": 0.0, "pretrain_iterations": 0, "learning_rate": 0.01, "optimizer": "adam",
        "vectors": "centred",
    }  # fmt: skip

    def __post_init__(self) -> None:
        if self.word_units < 2 or self.heads < 1 or self.feed_forward < 0:
            raise ValueError("mean-max needs at least 2 word units, 1 head and 0 feed-forward units")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}, expected at least 0 and less than 1")
        if self.layers not in LAYERS:
            raise ValueError(f"layers is {self.layers!r}, expected one of {', '.join(LAYERS)}")

    def word_dimension(self, dimension: int) -> int:
        """w, whatever the dimension.

        Raises:
            ValueError: the dimension is odd, or the heads do not divide half of it.
        """
        hidden, odd = divmod(dimension, 2)
        if odd or not hidden:
            raise ValueError(f"mean-max makes vectors of an even dimension (a maximum and a mean), not {dimension}")
        if hidden % self.heads:
            fitting = [str(h) for h in range(1, hidden + 1) if hidden % h == 0 and h <= 16]
            raise ValueError(
                f"{self.heads} heads cannot share {hidden} hidden units (half of dimension {dimension}); "
                f"heads can be {', '.join(fitting)}"
            )
        return self.word_units

    def initial(
        self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator
    ) -> MeanMaxParameters:
        """Matrices by Glorot and Bengio (2010), gains one, biases zero; the transformation near the identity.

        Layers that are to be fixed get a last bias that centres phrases of random words: their maxima on one side of
        zero, as far from it as their means on the other.

        Args:
            word_vectors: shape (V, w), used as they are.
            dimension: n = 2 m.
            start: `normal` or `averaging`; there is one start for both.
            rng: source of randomness.
        """
        w = self.word_dimension(dimension)
        m = dimension // 2
        d = self.feed_forward or m

        def glorot(rows: int, columns: int) -> FloatArray:
            limit = (6 / (rows + columns)) ** 0.5
            return rng.uniform(-limit, limit, (rows, columns)).astype(np.float32)

        def constant(size: int, value: float) -> FloatArray:
            return np.full(size, value, np.float32)

        scale = float(np.sqrt(np.square(word_vectors).mean())) or 1.0
        made = MeanMaxParameters(
            word_vectors=np.ascontiguousarray(word_vectors, np.float32),
            end=rng.normal(0, scale, w).astype(np.float32),
            query=glorot(m, w), key=glorot(m, w), value=glorot(m, w),
            attention_gain=constant(m, 1), attention_bias=constant(m, 0),
            widen=glorot(d, m), widen_bias=constant(d, 0), narrow=glorot(m, d), narrow_bias=constant(m, 0),
            hidden_gain=constant(m, 1), hidden_bias=constant(m, 0),
            transform=np.eye(2 * m, dtype=np.float32) + np.float32(0.1) * glorot(2 * m, 2 * m),
            transform_bias=constant(2 * m, 0),
        )  # fmt: skip
        if self.layers == "trained":
            return made
        lengths = rng.integers(1, _PROBE_WORDS + 1, _PROBES)
        words = rng.integers(0, len(word_vectors), lengths.sum())
        probes = Phrases(np.append(0, lengths.cumsum()), words.astype(np.int32))
        vectors, _ = self.pack(made).encoder(0).encode(probes, unit=False)
        highest, mean = vectors.mean(0, dtype=np.float64).reshape(2, m)
        return replace(made, hidden_bias=(-(highest + mean) / 2).astype(np.float32))

    def parameters(self, arrays: Mapping[str, FloatArray]) -> MeanMaxParameters:
        """Parameters from named arrays.

        Raises:
            KeyError: an array is missing.
            ValueError: they do not fit together, or with the options.
        """
        made = MeanMaxParameters(**{name: arrays[name] for name in MeanMaxParameters.__annotations__})
        self.word_dimension(made.dimension)
        return made

    def module(self, parameters: MeanMaxParameters) -> EncoderModule:
        """A module to train."""
        from phrasetool.encoders.mean_max_torch import MeanMaxEncoder

        return MeanMaxEncoder(parameters, self.heads, self.dropout, fixed=self.layers == "fixed")

    def pack(self, parameters: MeanMaxParameters) -> PackedEncoder:
        """The parameters laid out for scoring."""
        from phrasetool.encoders.mean_max_numba import PackedMeanMax

        return PackedMeanMax(parameters, self.heads)
