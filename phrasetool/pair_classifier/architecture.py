"""What a classifier of sentence pairs is made of: dimensions, and presets of them.

The paper (Mao et al. 2021, section 2.3): one recurrent layer of 256 units a direction reads both languages, its last
states are joined with an embedding of the sentence's length, and a layer of 256 units sees the product and the
difference of the two sides.
"""

from __future__ import annotations

from dataclasses import dataclass

CELLS = ("bilstm", "lstm", "gru")
LENGTHS = ("none", "concat", "add", "shared")
# Of a folder: the vectors of its pieces as they stand in its table, or in their sentence.
LAYERS = ("static", "contextual")


@dataclass(frozen=True)
class SiameseArchitecture:
    """Which classifier, and its dimensions.

    Attributes:
        inputs: `words` that have vectors of their own, or `folder`, the pieces of an encoder from elsewhere.
        layer: one of `LAYERS`; says nothing of words.
        tuned: the folder's vectors learn, too.
        characters: words are read by their parts of up to so many characters, too; 0: not.
        cell: `bilstm`, `lstm` (one direction), or `gru` (two directions).
        word_units: w, size of a word's or a piece's vector.
        units: of a state, a direction.
        hidden: units of the fully connected layer.
        length: how the length is joined with the sentence vector: `none`; `concat`, beside it, from a table a
            language; `shared`, beside it, from one table; `add`, a vector of its size, from a table a language.
        length_units: size of a length's vector; of `add` it is that of the sentence vector.
        longest: words that are read; the rest of a longer sentence is not seen.

    Raises:
        ValueError: an unknown name, or a size that is not positive.
    """

    inputs: str
    layer: str
    tuned: bool
    characters: int
    cell: str
    word_units: int
    units: int
    hidden: int
    length: str
    length_units: int
    longest: int

    def __post_init__(self) -> None:
        for name, choices in (
            ("inputs", ("words", "folder")), ("layer", LAYERS), ("cell", CELLS), ("length", LENGTHS),
        ):  # fmt: skip
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(choices)}")
        for name, least in (
            ("characters", 0), ("word_units", 1), ("units", 1), ("hidden", 1), ("length_units", 1), ("longest", 1),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least {least}")

    @property
    def dimension(self) -> int:
        """n, size of a sentence vector."""
        return self.units * (1 if self.cell == "lstm" else 2)

    @property
    def joined(self) -> int:
        """Size of a sentence vector with its length."""
        return self.dimension + (self.length_units if self.length in ("concat", "shared") else 0)


# Name -> sizes.  `paper` has those of the paper; `small` is for a CPU.
PRESETS: dict[str, dict[str, int]] = {
    "small": {"word_units": 128, "units": 128, "hidden": 128},
    "paper": {"word_units": 512, "units": 256, "hidden": 256},
}
