"""Dimensions of a syntactic encoder (Liu et al. 2019, section 2), and hyper-parameters of its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import SCHEDULES, DeclaredSettings, limited, option, require, seed_option
from phrasetool.phrases import FloatArray

# Number of universal parts of speech; the next number marks the end, and is also the first input of the decoder.
TAGS = 17
END = TAGS
# Settings of the presets: sizes and learning rate of the paper; and smaller ones for a CPU, the defaults.
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {},
    "paper": {
        "pieces": 40000, "decoder_units": 512, "learning_rate": 1e-4, "schedule": "constant", "batch_size": 32,
        "epochs": 10, "own_language": False, "decoder_dropout": False,
    },
}  # fmt: skip
# Options that are determined by the model that training starts from, if any.
SIZES = ("pieces", "piece_units", "units", "layers", "tag_units", "language_units", "decoder_units")
# Maximum input length in pieces, per word of the longest training sentence.
_PIECES_PER_WORD = 4


@dataclass(frozen=True)
class SyntaxShape:
    """Dimensions of encoder and decoder.

    Attributes:
        pieces: rows of the table of piece vectors.
        languages: number of languages whose parts of speech are predicted.
        piece_units: size of a piece vector.
        units: size of an encoder state per direction.
        layers: layers of the encoder.
        tag_units, language_units: sizes of tag vectors and language vectors.
        decoder_units: size of a decoder state.
        longest: maximum input length in pieces.

    Raises:
        ValueError: a value is out of range.
    """

    pieces: int
    languages: int
    piece_units: int
    units: int
    layers: int
    tag_units: int
    language_units: int
    decoder_units: int
    longest: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} is {value!r}, expected at least 1")

    @property
    def dimension(self) -> int:
        """Size of the vector of a text."""
        return 2 * self.units

    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every array of encoder and decoder."""
        units, deep = self.units, self.decoder_units
        shapes: dict[str, tuple[int, ...]] = {"pieces.weight": (self.pieces, self.piece_units)}
        for layer in range(self.layers):
            size = self.piece_units if layer == 0 else 2 * units
            for end in ("", "_reverse"):
                shapes |= _lstm_shapes(f"encoder.{layer}.", end, size, units)
        shapes["start.weight"], shapes["start.bias"] = (2 * deep, 4 * self.layers * units), (2 * deep,)
        shapes["tags.weight"] = (TAGS + 1, self.tag_units)
        shapes["languages.weight"] = (self.languages, self.language_units)
        shapes |= _lstm_shapes("decoder.", "", self.tag_units + self.language_units + self.dimension, deep)
        return {**shapes, "output.weight": (TAGS + 1, deep), "output.bias": (TAGS + 1,)}

    def initial_arrays(self, seed: int) -> dict[str, FloatArray]:
        """Return initial arrays, float32: the unknown piece is zero, all others have torch's default distributions."""
        rng = np.random.default_rng(seed)
        arrays = {}
        for name, shape in self.array_shapes().items():
            if name in ("pieces.weight", "tags.weight", "languages.weight"):
                arrays[name] = rng.standard_normal(shape, np.float32)
                continue
            kind = name.split(".")[0]
            size = {"encoder": self.units, "decoder": self.decoder_units, "output": self.decoder_units}
            bound = size.get(kind, 4 * self.layers * self.units) ** -0.5
            arrays[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
        arrays["pieces.weight"][0] = 0
        return arrays


def _lstm_shapes(prefix: str, end: str, size: int, units: int) -> dict[str, tuple[int, ...]]:
    sizes: dict[str, tuple[int, ...]] = {
        "weight_ih": (4 * units, size), "weight_hh": (4 * units, units), "bias_ih": (4 * units,),
        "bias_hh": (4 * units,),
    }  # fmt: skip
    return {f"{prefix}{name}_l0{end}": shape for name, shape in sizes.items()}


@dataclass(frozen=True)
class SyntaxSettings(DeclaredSettings):
    """Hyper-parameters of a syntactic encoder.

    Attributes:
        preset: one of `PRESETS`; determines the settings that are not set explicitly.
        pieces: number of subword units, shared by all languages.
        piece_units, units, layers, tag_units, language_units, decoder_units: see `SyntaxShape`.
        dropout: share of components dropped in training.
        decoder_dropout: drop components in the decoder, too, which the paper does not.
        learning_rate: initial step size of Adam.
        schedule: `constant`, or `linear`: the step size falls to 0 over the epochs.
        batch_size: examples per update.
        epochs: maximum number of passes over the examples; the best epoch on the development set is kept.
        patience: training ends after this many epochs without improvement on the development set.
        clip: maximum norm of the gradient.
        precision: float32, or bfloat16 for matrix products, which are most of the work: faster on CPUs that support it.
        min_length, max_length: words of a training sentence.
        own_language: also predict a sentence's own parts of speech, which the paper does not.
        seed: random seed.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "syntax"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    preset: str = option("fast", f"Sizes and steps: {' or '.join(PRESETS)}.", choices=PRESETS)
    pieces: int = option(16000, "Number of subword units for all languages.")
    piece_units: int = option(100, "Size of the vector of a subword unit.")
    units: int = option(128, "Encoder units per direction.")
    layers: int = option(2, "Number of encoder layers.")
    tag_units: int = option(100, "Size of the vector of a tag.")
    language_units: int = option(20, "Size of a language vector.")
    decoder_units: int = option(256, "Decoder units.")
    dropout: float = option(0.2, "Dropout.", ge=0, lt=1)
    learning_rate: float = option(0.001, "Step size.", gt=0)
    schedule: str = option("linear", "Step size: constant, linear.", choices=SCHEDULES)
    batch_size: int = option(64, "Examples per update.", ge=1)
    epochs: int = option(3, "Passes over the examples.", ge=1)
    patience: int = option(3, "Stop after this many epochs without a better development loss.", ge=1)
    clip: float = option(5.0, "Maximum norm of the gradient.", gt=0)
    precision: str = option(
        "float32", "Precision of matrix products in training: float32 or bfloat16.", choices=PRECISIONS
    )
    min_length: int = option(3, "Leave out sentences with fewer words.", ge=1)
    max_length: int = limited(60, ge=1)
    own_language: bool = True
    decoder_dropout: bool = True
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.min_length <= self.max_length, "min_length", f"at most {self.max_length}")
        _ = self.shape(self.pieces, 1)

    def shape(self, pieces: int, languages: int) -> SyntaxShape:
        """Return the dimensions for a number of pieces and of languages whose parts of speech are predicted."""
        return SyntaxShape(
            pieces, languages, self.piece_units, self.units, self.layers, self.tag_units, self.language_units,
            self.decoder_units, _PIECES_PER_WORD * self.max_length,
        )  # fmt: skip
