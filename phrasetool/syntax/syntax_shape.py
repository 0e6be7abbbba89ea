"""The dimensions of a syntactic encoder and its decoder (paper, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import FloatArray

# Numbers of tags: the universal parts of speech, then the end, which is the beginning where a tag is read.
TAGS = 17
END = TAGS


@dataclass(frozen=True)
class SyntaxShape:
    """Which encoder and decoder.

    Attributes:
        pieces: rows of the table of pieces.
        languages: whose parts of speech are predicted.
        piece_units: size of a piece's vector.
        units: size of a state of the encoder, a direction.
        layers: of the encoder.
        tag_units, language_units: sizes of the vectors of a tag and of a language.
        decoder_units: size of a state of the decoder.
        longest: pieces of a text that is read.

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
        """Name -> shape of every array that there is."""
        units, deep = self.units, self.decoder_units
        found: dict[str, tuple[int, ...]] = {"pieces.weight": (self.pieces, self.piece_units)}
        for layer in range(self.layers):
            size = self.piece_units if layer == 0 else 2 * units
            for end in ("", "_reverse"):
                found |= _lstm(f"encoder.{layer}.", end, size, units)
        found["start.weight"], found["start.bias"] = (2 * deep, 4 * self.layers * units), (2 * deep,)
        found["tags.weight"] = (TAGS + 1, self.tag_units)
        found["languages.weight"] = (self.languages, self.language_units)
        found |= _lstm("decoder.", "", self.tag_units + self.language_units + self.dimension, deep)
        return {**found, "output.weight": (TAGS + 1, deep), "output.bias": (TAGS + 1,)}

    def initial_arrays(self, seed: int) -> dict[str, FloatArray]:
        """Every array before training, float32: the unknown piece is zero, all else is drawn as torch does."""
        rng = np.random.default_rng(seed)
        found = {}
        for name, shape in self.array_shapes().items():
            if name in ("pieces.weight", "tags.weight", "languages.weight"):
                found[name] = rng.standard_normal(shape, np.float32)
                continue
            kind = name.split(".")[0]
            size = {"encoder": self.units, "decoder": self.decoder_units, "output": self.decoder_units}
            bound = size.get(kind, 4 * self.layers * self.units) ** -0.5
            found[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
        found["pieces.weight"][0] = 0
        return found


def _lstm(head: str, end: str, size: int, units: int) -> dict[str, tuple[int, ...]]:
    sizes: dict[str, tuple[int, ...]] = {
        "weight_ih": (4 * units, size), "weight_hh": (4 * units, units), "bias_ih": (4 * units,),
        "bias_hh": (4 * units,),
    }  # fmt: skip
    return {f"{head}{name}_l0{end}": shape for name, shape in sizes.items()}
