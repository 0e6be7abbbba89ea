"""Architectures and dimensions of text autoencoders, and hyper-parameters of their training.

The five architectures of Zhang, Wu, Li and Zhang have encoders and decoders of self-attention or of LSTMs.  The output
of the encoder is pooled into the vector of the text, and at every step of the decoder a gate admits each pooled vector,
component by component (Eq. 19-21):

    architecture     encoder, decoder   pooled      the decoder's state   size of the vector
    mean-max         self-attention     max, mean   -                     2 m
    mean             self-attention     mean        -                     m
    max              self-attention     max         -                     m
    lstm-mean-max    LSTM               max, mean   starts from the text  4 m   (the paper's "gated mean-max RAE")
    lstm             LSTM               -           starts from the text  2 m   (the paper's "RAE")

m is the number of hidden units.  An LSTM encoder reads in both directions with m / 2 units each, so that pooled vectors
have the same size; the concatenated last states of both directions initialise the output and the cell of the decoder's
LSTM of m units.  The decoder's only information about a text is its vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phrasetool.nn.device import PRECISIONS
from phrasetool.nn.positions import LONGEST
from phrasetool.options import DeclaredSettings, option, seed_option
from phrasetool.phrases import FloatArray


@dataclass(frozen=True)
class _Kind:
    recurrent: bool
    pooled: tuple[str, ...]


_KINDS = {
    "mean-max": _Kind(False, ("max", "mean")),
    "mean": _Kind(False, ("mean",)),
    "max": _Kind(False, ("max",)),
    "lstm-mean-max": _Kind(True, ("max", "mean")),
    "lstm": _Kind(True, ()),
}
ARCHITECTURES = tuple(_KINDS)


@dataclass(frozen=True)
class TextArchitecture:
    """Architecture of an autoencoder, and its dimensions.

    Attributes:
        name: one of `ARCHITECTURES`.
        word_units: w, size of a word vector.
        hidden: m, number of hidden units.
        heads: h, attention heads; unused by LSTMs.
        feed_forward: d, units of the feed-forward layers; unused by LSTMs.

    Raises:
        ValueError: an unknown name, a size that is not positive, heads that do not divide m, or an LSTM with an odd m.
    """

    name: str
    word_units: int
    hidden: int
    heads: int
    feed_forward: int

    def __post_init__(self) -> None:
        if self.name not in _KINDS:
            raise ValueError(f"unknown architecture {self.name!r}; expected one of {', '.join(ARCHITECTURES)}")
        for name, least in (("word_units", 2), ("hidden", 2), ("heads", 1), ("feed_forward", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} is {value!r}, expected at least {least}")
        if self.recurrent and self.hidden % 2:
            raise ValueError(f"hidden is {self.hidden}, expected an even number: an LSTM reads in two directions")
        if not self.recurrent and self.hidden % self.heads:
            fitting = [str(h) for h in range(1, 17) if self.hidden % h == 0]
            raise ValueError(
                f"{self.heads} heads cannot share {self.hidden} hidden units; heads can be {', '.join(fitting)}"
            )

    @property
    def recurrent(self) -> bool:
        """Whether encoder and decoder are LSTMs."""
        return _KINDS[self.name].recurrent

    @property
    def pooled(self) -> tuple[str, ...]:
        """Names of the pooled vectors, in their order in the vector of a text."""
        return _KINDS[self.name].pooled

    @property
    def dimension(self) -> int:
        """Size of the vector of a text."""
        return (len(self.pooled) + 2 * self.recurrent) * self.hidden

    def shapes(self, vocabulary_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array, by name.

        `words` has a row per word, then one for the end of the sequence and one for its beginning; `output` has no row
        for the beginning.  Names ending in `gain` belong to layer norms.
        """
        w, m, d = self.word_units, self.hidden, self.feed_forward
        shapes: dict[str, tuple[int, ...]] = {"words": (vocabulary_size + 2, w)}
        if self.recurrent:
            for name, units in (("encoder.{}_l0", m // 2), ("encoder.{}_l0_reverse", m // 2), ("decoder.{}_l0", m)):
                shapes[name.format("weight_ih")] = (4 * units, w)
                shapes[name.format("weight_hh")] = (4 * units, units)
                shapes[name.format("bias_ih")] = shapes[name.format("bias_hh")] = (4 * units,)
        else:
            for half in ("encoder", "decoder"):
                shapes.update({f"{half}.attention.{name}": (m, w) for name in ("query", "key", "value")})
                shapes.update({
                    f"{half}.attention_gain": (m,), f"{half}.attention_bias": (m,),
                    f"{half}.widen": (d, m), f"{half}.widen_bias": (d,),
                    f"{half}.narrow": (m, d), f"{half}.narrow_bias": (m,),
                    f"{half}.hidden_gain": (m,), f"{half}.hidden_bias": (m,),
                })  # fmt: skip
        for name in self.pooled:
            shapes.update({f"gates.{name}.pooled": (m, m), f"gates.{name}.hidden": (m, m), f"gates.{name}.bias": (m,)})
        if self.pooled:
            shapes.update({"gated_gain": (m,), "gated_bias": (m,)})
        return {**shapes, "output": (vocabulary_size + 1, m), "output_bias": (vocabulary_size + 1,)}

    def initial(self, vocabulary_size: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Return initial arrays: matrices by Glorot and Bengio (2010), the paper's "Xavier", gains one, biases zero.

        The initial root mean square of word vectors is 1, about that of the positions they are added to: by Glorot and
        Bengio's rule, which would count the vocabulary as inputs, they would be fifty times smaller and negligible next
        to the positions, and mean-max would need about four times as many updates to reconstruct equally well.  The
        initial bias of the forget gates of an LSTM is one.
        """
        arrays = {}
        for name, shape in self.shapes(vocabulary_size).items():
            if len(shape) == 2:
                limit = 3**0.5 if name == "words" else (6 / sum(shape)) ** 0.5
                arrays[name] = rng.uniform(-limit, limit, shape).astype(np.float32)
            else:
                arrays[name] = np.full(shape, name.endswith("gain"), np.float32)
            if ".bias_ih" in name:
                units = shape[0] // 4
                arrays[name][units : 2 * units] = 1
        return arrays


@dataclass(frozen=True)
class AutoencoderSettings(DeclaredSettings):
    """Hyper-parameters of an autoencoder; defaults for a CPU, in brackets the values of Zhang, Wu, Li and Zhang.

    Attributes:
        architecture: one of `ARCHITECTURES`.
        word_units: w (512).
        hidden: m (1024).
        heads: h (8).
        feed_forward: d; 0 for the number of hidden units.
        dropout: share of components dropped (0.2).
        learning_rate: initial step size of Adam (0.0002, constant); it falls to 0 linearly over the epochs.
        batch_size: texts per update (32).
        epochs: passes over the texts.
        clip: maximum norm of the gradient (5).
        min_count: words seen less often are treated as unknown.
        vocabulary_size: maximum number of the remaining words, the most frequent ones; 0 for all (25000 and 33090).
        precision: float32, or bfloat16 for the products with the output matrix, which are most of the work: faster on
            CPUs that support it.
        max_length: texts with more words are left out.
        seed: random seed.
    """

    kind: ClassVar[str] = "autoencoder"

    architecture: str = option("mean-max", f"Architecture: {', '.join(ARCHITECTURES)}.")
    word_units: int = option(128, "Size of a word vector.")
    hidden: int = option(256, "Hidden units.")
    heads: int = option(4, "Attention heads; must divide the hidden units.")
    feed_forward: int = option(0, "Feed-forward units; 0: as many as hidden units.", ge=0)
    dropout: float = option(0.2, "Dropout.", ge=0, lt=1)
    learning_rate: float = option(0.002, "Initial step size; it falls to 0.", gt=0)
    batch_size: int = option(64, "Texts per update.", ge=1)
    epochs: int = option(10, "Passes over the texts.", ge=1)
    clip: float = option(5.0, "Maximum norm of the gradient.", gt=0)
    min_count: int = option(3, "Rarer words are unknown.", ge=1)
    vocabulary_size: int = option(0, "Maximum number of words; 0: all.", ge=0)
    max_length: int = option(LONGEST, "Leave out texts with more words.", ge=1, le=LONGEST)
    precision: str = option("float32", "Precision of the output layer: float32 or bfloat16.", choices=PRECISIONS)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.shape

    @property
    def shape(self) -> TextArchitecture:
        """Architecture and dimensions."""
        return TextArchitecture(
            self.architecture, self.word_units, self.hidden, self.heads, self.feed_forward or self.hidden
        )
