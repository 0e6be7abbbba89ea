"""The five text autoencoders of Zhang, Wu, Li and Zhang ("Gated Mean-Max Autoencoder for Paragraph Representations").

Their encoders and decoders are of self-attention or of LSTMs; what the encoder gives is pooled into the vector of the
text, and at every step of the decoder a gate lets each pooled vector in, component by component (Eq. 19-21):

    architecture     encoder, decoder   pooled      the decoder's state   size of the vector
    mean-max         self-attention     max, mean   -                     2 m
    mean             self-attention     mean        -                     m
    max              self-attention     max         -                     m
    lstm-mean-max    LSTM               max, mean   starts from the text  4 m   (the paper's "gated mean-max RAE")
    lstm             LSTM               -           starts from the text  2 m   (the paper's "RAE")

m hidden units.  An LSTM encoder reads in both directions with m / 2 units each, so that what is pooled has the same
size; the last states of both directions, side by side, start the decoder's LSTM of m units: its output and its cell.
The vector of a text is all that its decoder is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """Which autoencoder, and its dimensions.

    Attributes:
        name: one of `ARCHITECTURES`.
        word_units: w, size of a word vector.
        hidden: m.
        heads: h; only self-attention has heads.
        feed_forward: d, units of the feed-forward layers, which only self-attention has.

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
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least {least}")
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
        """Which pooled vectors there are, in the order in which they stand in the vector of a text."""
        return _KINDS[self.name].pooled

    @property
    def dimension(self) -> int:
        """Size of the vector of a text."""
        return (len(self.pooled) + 2 * self.recurrent) * self.hidden

    def shapes(self, vocabulary_size: int) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array.

        `words` has a row per word, then one for the end of the sequence and one for its beginning; `output` has no
        beginning.  Names ending in `gain` belong to layer norms.
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
        """Arrays to start from: matrices by Glorot and Bengio (2010), the paper's "Xavier", gains one, biases zero.

        Word vectors start with a root mean square of 1, about that of the positions they are added to: by Glorot and
        Bengio's rule, which would count the vocabulary as inputs, they would start fifty times smaller, drown in the
        positions, and mean-max would take some four times as many updates to the same reconstruction.  The forget
        gates of an LSTM start open, with a bias of one.
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
