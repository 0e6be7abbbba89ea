"""Phrase encoders: recursive auto-encoder, gated mean-max attention, and the mean of fixed word vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from phrasetool.options import option
from phrasetool.phrase_encoder.encoder import EncoderKind
from phrasetool.phrase_encoder.parameters import MeanMaxParameters, MeanParameters, RaeParameters
from phrasetool.phrases import FloatArray, Phrases

if TYPE_CHECKING:
    from phrasetool.phrase_encoder.encoder import EncoderModule, PackedEncoder


@dataclass(frozen=True)
class Rae(EncoderKind):
    """The recursive auto-encoder, as `--architecture rae`."""

    name: ClassVar[str] = "rae"
    summary: ClassVar[str] = "a recursive auto-encoder: adjacent vectors merged greedily"
    reconstructs: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {}

    def word_dimension(self, dimension: int) -> int:
        """Return n, because the vector of a word is that of a phrase."""
        return dimension

    def initial(self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator) -> RaeParameters:
        """Return initial parameters.

        Args:
            word_vectors: shape (V, n), used unchanged.
            dimension: n.
            start: `averaging` (a parent is about the mean of its children) or `normal` (the paper's).
            rng: source of randomness.
        """
        make = RaeParameters.averaging if start == "averaging" else RaeParameters.random
        return make(word_vectors, rng)

    def parameters(self, arrays: Mapping[str, FloatArray]) -> RaeParameters:
        """Return parameters from arrays by name.

        Raises:
            KeyError: an array is missing.
            ValueError: the arrays do not agree.
        """
        return RaeParameters(**{name: arrays[name] for name in RaeParameters.__annotations__})

    def module(self, parameters: RaeParameters) -> EncoderModule:
        """Return a module to train."""
        from phrasetool.phrase_encoder.rae_network import RecursiveAutoencoder

        return RecursiveAutoencoder(parameters)

    def pack(self, parameters: RaeParameters) -> PackedEncoder:
        """Return the parameters laid out for scoring."""
        from phrasetool.phrase_encoder.rae_kernels import PackedRae

        return PackedRae(parameters)


LAYERS = ("fixed", "trained")
# Number of random phrases that show where initial vectors lie, and their maximum length.
_PROBES, _PROBE_WORDS = 1000, 5


@dataclass(frozen=True)
class MeanMax(EncoderKind):
    """The gated mean-max attention encoder, as `--architecture mean-max`.

    Attributes:
        word_units: w.
        heads: h; must divide the hidden units, half the dimension.
        feed_forward: d; 0 for as many as hidden units.
        dropout: share of components dropped in training from the input and from the output of each layer.
        layers: `fixed`: attention, feed-forward and norms keep their initial values, and only word vectors and
            transformations are trained; or `trained`.

    Raises:
        ValueError: an option is out of range.
    """

    word_units: int = option(128, "Size of a word vector.", ge=2)
    heads: int = option(4, "Attention heads; must divide half the dimension.", ge=1)
    feed_forward: int = option(0, "Feed-forward units; 0: half the dimension.", ge=0)
    # The paper's 0.2 is for texts.  With phrases, dropout of the positions, of amplitude 1, drowns out the words.
    dropout: float = option(0.0, "Dropout.", ge=0, lt=1)
    layers: str = option(
        "fixed",
        "fixed, or trained (needs in-batch, a smaller step size and vector scale).",
        choices=LAYERS,
    )

    name: ClassVar[str] = "mean-max"
    summary: ClassVar[str] = "self-attention, then the maximum and the mean over the words"
    # Only word vectors are trained, spread out at the start, with large steps.  Trained layers are not better at this
    # dimension, separate similar phrases less, and in co-training, where nothing separates phrases, make all of them
    # alike.
    defaults: ClassVar[Mapping[str, Any]] = {
        "dimension": 512, "alpha": 0.0, "pretrain_iterations": 0, "learning_rate": 0.01, "optimizer": "adam",
        "vectors": "centred",
    }  # fmt: skip

    @property
    def trains_layers(self) -> bool:
        """Whether attention, feed-forward and norms are trained."""
        return self.layers == "trained"

    def word_dimension(self, dimension: int) -> int:
        """Return w, for any dimension.

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
        """Draw matrices by Glorot and Bengio (2010); gains are one, biases zero, the transformation near the identity.

        The last bias of fixed layers centres phrases of random words: their maxima are on one side of zero, as far from
        it as their means on the other.

        Args:
            word_vectors: shape (V, w), used unchanged.
            dimension: n = 2 m.
            start: `normal` or `averaging`, with the same result.
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
        initial_parameters = MeanMaxParameters(
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
            return initial_parameters
        lengths = rng.integers(1, _PROBE_WORDS + 1, _PROBES)
        words = rng.integers(0, len(word_vectors), lengths.sum())
        probes = Phrases(np.append(0, lengths.cumsum()), words.astype(np.int32))
        vectors, _ = self.pack(initial_parameters).encoder(0).encode(probes, unit=False)
        highest, mean = vectors.mean(0, dtype=np.float64).reshape(2, m)
        return replace(initial_parameters, hidden_bias=(-(highest + mean) / 2).astype(np.float32))

    def parameters(self, arrays: Mapping[str, FloatArray]) -> MeanMaxParameters:
        """Return parameters from arrays by name.

        Raises:
            KeyError: an array is missing.
            ValueError: the arrays do not agree with each other or with the options.
        """
        result = MeanMaxParameters(**{name: arrays[name] for name in MeanMaxParameters.__annotations__})
        self.word_dimension(result.dimension)
        return result

    def module(self, parameters: MeanMaxParameters) -> EncoderModule:
        """Return a module to train."""
        from phrasetool.phrase_encoder.networks import MeanMaxEncoder

        return MeanMaxEncoder(parameters, self.heads, self.dropout, fixed=self.layers == "fixed")

    def pack(self, parameters: MeanMaxParameters) -> PackedEncoder:
        """Return the parameters laid out for scoring."""
        from phrasetool.phrase_encoder.mean_kernels import PackedMeanMax

        return PackedMeanMax(parameters, self.heads)


TRANSFORMATIONS = ("learnt", "identity")


@dataclass(frozen=True)
class Mean(EncoderKind):
    """The mean of fixed word vectors, as `--architecture mean`.

    Attributes:
        transformation: `learnt`, a matrix and a bias per direction; or `identity`, for vectors of both languages in one
            space: then nothing is trained.

    Raises:
        ValueError: an option is out of range.
    """

    transformation: str = option(
        "learnt",
        "learnt; or identity, for word vectors of one space: then nothing is trained.",
        choices=TRANSFORMATIONS,
    )

    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "the mean of fixed word vectors, such as fastText's or MUSE's"
    fixed_words: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "dimension": 300, "alpha": 0.0, "pretrain_iterations": 0, "unknown_rate": 0.0, "learning_rate": 0.003,
    }  # fmt: skip

    @property
    def learns(self) -> bool:
        """Whether there is anything to train."""
        return self.transformation == "learnt"

    @property
    def trains_layers(self) -> bool:
        """Return False, because a mean has no layers."""
        return False

    def word_dimension(self, dimension: int) -> int:
        """Return `dimension`."""
        return dimension

    def initial(self, word_vectors: FloatArray, dimension: int, start: str, rng: np.random.Generator) -> MeanParameters:
        """Return the given word vectors, with zero for the unknown word, and the identity.

        Args:
            word_vectors: shape (V, n).
            dimension: n.
            start: not used.
            rng: not used.
        """
        vectors = np.array(word_vectors, np.float32)
        vectors[:1] = 0
        return MeanParameters(vectors, np.eye(dimension, dtype=np.float32), np.zeros(dimension, np.float32))

    def parameters(self, arrays: Mapping[str, FloatArray]) -> MeanParameters:
        """Return parameters from arrays by name.

        Raises:
            KeyError: an array is missing.
            ValueError: the arrays do not agree.
        """
        return MeanParameters(**{name: arrays[name] for name in MeanParameters.__annotations__})

    def module(self, parameters: MeanParameters) -> EncoderModule:
        """Return a module to train."""
        from phrasetool.phrase_encoder.networks import MeanEncoder

        return MeanEncoder(parameters)

    def pack(self, parameters: MeanParameters) -> PackedEncoder:
        """Return the parameters laid out for scoring."""
        from phrasetool.phrase_encoder.mean_kernels import PackedMean

        return PackedMean(parameters, carried=self.learns)
