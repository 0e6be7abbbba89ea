"""Hyper-parameters of an own BERT, and its presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import option, require, seed_option
from phrasetool.train.settings import DeclaredSettings

# Sizes: states, layers, heads, units of the feed-forward layers.
PRESETS: dict[str, dict[str, int]] = {
    "small": {"units": 256, "layers": 4, "heads": 4, "feed_forward": 1024},
    "smaller": {"units": 192, "layers": 3, "heads": 3, "feed_forward": 768},
    "tiny": {"units": 32, "layers": 1, "heads": 2, "feed_forward": 64},
}
HAN = ("words", "characters")
# A joined pair has three special tokens, and both sides should have some pieces.
_FEWEST_POSITIONS, _MOST_POSITIONS = 8, 512
# Special tokens, and some characters in both their forms.
_FEWEST_PIECES = 32


@dataclass(frozen=True)
class MaskedLmSettings(DeclaredSettings):
    """Everything that decides what training does.  Masking is that of Devlin et al. (2019), section 3.1; pairs that are
    joined are those of Lample and Conneau (2019), section 3.3.

    Attributes:
        preset: one of `PRESETS`; gives the sizes that are 0 here.
        units, layers, heads, feed_forward: of the network; 0 for those of the preset.
        positions: tokens of a text or of a joined pair at most, special ones included.
        vocabulary_size: pieces at most, special ones included.
        min_count: pieces and characters seen less often are not made.
        han: `words`: a word of Chinese characters is cut like any other; `characters`: each is a piece, as in
            multilingual BERT.
        mask_share: share of the pieces that are to be predicted (0.15).
        dropout: share of components dropped in training.
        learning_rate: largest step size of Adam.
        warm_up: share of the updates in which the step size rises; then it falls to nothing.
        batch_tokens: tokens per update, filling included.
        epochs: passes over the text; the one with the smallest loss on the development set is kept.
        clip: the gradient's norm is cut to this.
        precision: float32, or bfloat16 for products of matrices, most of the work: faster on processors that have it.
        seed: fixes everything.
    """

    kind: ClassVar[str] = "masked-lm"

    preset: str = option("small", f"Sizes of the own BERT: {', '.join(PRESETS)}.", choices=PRESETS)
    units: int = option(0, "Size of a state; 0: the preset's.", ge=0)
    layers: int = option(0, "Layers; 0: the preset's.", ge=0)
    heads: int = option(0, "Attention heads; 0: the preset's.", ge=0)
    feed_forward: int = option(0, "Units of the feed-forward layers; 0: the preset's.", ge=0)
    positions: int = option(
        128,
        "Tokens of a text, or of a joined pair, at most; the rest is cut off.",
        ge=_FEWEST_POSITIONS,
        le=_MOST_POSITIONS,
    )
    vocabulary_size: int = option(16000, "Pieces of words at most.", ge=_FEWEST_PIECES)
    min_count: int = option(2, "Pieces and characters seen less often are not made.", ge=1)
    han: str = option("words", f"What Chinese characters make up: {' (cut into pieces) or '.join(HAN)}.", choices=HAN)
    mask_share: float = option(0.15, "Share of the pieces that are to be predicted.", gt=0, lt=1)
    dropout: float = option(0.0, "Share of components dropped in training.", ge=0, lt=1)
    learning_rate: float = option(0.001, "Largest step size of Adam.", gt=0)
    warm_up: float = option(0.1, "Share of the updates in which the step size rises; then it falls to 0.", ge=0, lt=1)
    batch_tokens: int = option(2048, "Tokens per update.")
    epochs: int = option(10, "Passes over the text; the best on the development set is kept.", ge=1)
    clip: float = option(1.0, "The norm of the gradient is cut to this.", gt=0)
    precision: str = option("float32", "Of products of matrices in training: float32 or bfloat16.", choices=PRECISIONS)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        # A field that is 0 takes the preset's value, so that what is recorded is what was trained.
        for name, size in PRESETS[self.preset].items():
            if getattr(self, name) == 0:
                object.__setattr__(self, name, size)
        require(self, self.units % self.heads == 0, "units", f"a multiple of the {self.heads} heads")
        require(self, self.batch_tokens >= self.positions, "batch_tokens", f"at least the {self.positions} positions")

    def rate_share(self, done: int, updates: int) -> float:
        """Share of the full step size of an update: it rises for the first `warm_up` of them, then falls to nothing.

        Args:
            done: updates before it.
            updates: all of them.
        """
        rising = max(1, round(self.warm_up * updates))
        if done < rising:
            return (done + 1) / rising
        return (updates - done) / max(1, updates - rising + 1)
