"""Hyper-parameters of a syntactic encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import limited, option, require, seed_option
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.train.settings import SCHEDULES, DeclaredSettings

# What the presets want: the sizes and steps of the paper; and less, for a CPU.
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {},
    "paper": {
        "pieces": 40000, "decoder_units": 512, "learning_rate": 1e-4, "schedule": "constant", "batch_size": 32,
        "epochs": 10, "own_language": False,
    },
}  # fmt: skip
# Options that a model to start from decides.
SIZES = ("pieces", "piece_units", "units", "layers", "tag_units", "language_units", "decoder_units")
# Pieces that are read for each word of the longest sentence.
_PIECES_A_WORD = 4


@dataclass(frozen=True)
class SyntaxSettings(DeclaredSettings):
    """Everything that decides what training does.

    Attributes:
        preset: one of `PRESETS`; it decides what is not given.
        pieces: of words, for all languages together.
        piece_units, units, layers, tag_units, language_units, decoder_units: see `SyntaxShape`.
        dropout: share of components dropped in training.
        learning_rate: step size of Adam.
        schedule: `constant`, or `linear`: it falls to nothing over the epochs.
        batch_size: examples per update.
        epochs: passes over the examples at most; the best on the development set is kept.
        patience: training ends when the development set was no better for so many epochs.
        clip: the gradient's norm is cut to this.
        precision: float32, or bfloat16 for products of matrices, most of the work: faster on processors that have it.
        min_length, max_length: words of a sentence that is learnt from.
        own_language: predict a sentence's own parts of speech, too; the paper does not.
        seed: fixes everything.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "syntax"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    preset: str = option("fast", f"Sizes and steps: {' or '.join(PRESETS)}.", choices=PRESETS)
    pieces: int = option(16000, "Pieces of words, for all languages (preset paper: 40000).")
    piece_units: int = option(100, "Size of the vector of a piece.")
    units: int = option(128, "Size of a state of the encoder, a direction.")
    layers: int = option(2, "Layers of the encoder.")
    tag_units: int = option(100, "Size of the vector of a part of speech.")
    language_units: int = option(20, "Size of the vector of a language.")
    decoder_units: int = option(256, "Size of a state of the decoder (preset paper: 512).")
    dropout: float = option(0.2, "Share of components dropped in training.", ge=0, lt=1)
    learning_rate: float = option(0.001, "Step size of Adam (preset paper: 0.0001).", gt=0)
    schedule: str = option(
        "linear", "constant, or linear: the step size falls to 0 (preset paper: constant).", choices=SCHEDULES
    )
    batch_size: int = option(64, "Examples per update (preset paper: 32).", ge=1)
    epochs: int = option(3, "Passes over the examples (preset paper: 10).", ge=1)
    patience: int = option(3, "End when the development set was no better for so many epochs.", ge=1)
    clip: float = option(5.0, "The norm of the gradient is cut to this.", gt=0)
    precision: str = option("float32", "Of products of matrices in training: float32 or bfloat16.", choices=PRECISIONS)
    min_length: int = option(3, "Leave out sentences with fewer words.", ge=1)
    max_length: int = limited(60, ge=1)
    own_language: bool = True
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.min_length <= self.max_length, "min_length", f"at most {self.max_length}")
        _ = self.shape(self.pieces, 1)

    def shape(self, pieces: int, languages: int) -> SyntaxShape:
        """The dimensions for so many pieces, and languages that are predicted."""
        return SyntaxShape(
            pieces, languages, self.piece_units, self.units, self.layers, self.tag_units, self.language_units,
            self.decoder_units, _PIECES_A_WORD * self.max_length,
        )  # fmt: skip
