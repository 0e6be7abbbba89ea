"""Hyper-parameters of a syntactic encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import option, require
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.train.settings import DeclaredSettings

_SCHEDULES = ("constant", "linear")
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
    wishes: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    preset: str = option("fast", f"Sizes and steps: {' or '.join(PRESETS)}.")
    pieces: int = option(16000, "Pieces of words, for all languages (preset paper: 40000).")
    piece_units: int = option(100, "Size of the vector of a piece.")
    units: int = option(128, "Size of a state of the encoder, a direction.")
    layers: int = option(2, "Layers of the encoder.")
    tag_units: int = option(100, "Size of the vector of a part of speech.")
    language_units: int = option(20, "Size of the vector of a language.")
    decoder_units: int = option(256, "Size of a state of the decoder (preset paper: 512).")
    dropout: float = option(0.2, "Share of components dropped in training.")
    learning_rate: float = option(0.001, "Step size of Adam (preset paper: 0.0001).")
    schedule: str = option("linear", "constant, or linear: the step size falls to 0 (preset paper: constant).")
    batch_size: int = option(64, "Examples per update (preset paper: 32).")
    epochs: int = option(3, "Passes over the examples (preset paper: 10).")
    patience: int = option(3, "End when the development set was no better for so many epochs.")
    clip: float = option(5.0, "The norm of the gradient is cut to this.")
    precision: str = option("float32", "Of products of matrices in training: float32 or bfloat16.")
    min_length: int = option(3, "Leave out sentences with fewer words.")
    max_length: int = 60
    own_language: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        for name, choices in (("preset", tuple(PRESETS)), ("schedule", _SCHEDULES), ("precision", PRECISIONS)):
            require(self, getattr(self, name) in choices, name, f"one of {', '.join(choices)}")
        for name in ("batch_size", "epochs", "patience", "min_length", "max_length"):
            require(self, getattr(self, name) >= 1, name, "at least 1")
        require(self, self.min_length <= self.max_length, "min_length", f"at most {self.max_length}")
        require(self, 0 <= self.dropout < 1, "dropout", "at least 0 and less than 1")
        for name in ("learning_rate", "clip"):
            require(self, getattr(self, name) > 0, name, "more than 0")
        require(self, 0 <= self.seed < 1 << 32, "seed", f"from 0 to {(1 << 32) - 1}")
        _ = self.shape(self.pieces, 1)

    def shape(self, pieces: int, languages: int) -> SyntaxShape:
        """The dimensions for so many pieces, and languages that are predicted."""
        return SyntaxShape(
            pieces, languages, self.piece_units, self.units, self.layers, self.tag_units, self.language_units,
            self.decoder_units, _PIECES_A_WORD * self.max_length,
        )  # fmt: skip
