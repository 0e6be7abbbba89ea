"""Hyper-parameters of a BERT trained from scratch, and their presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import DeclaredSettings, option, preset_sizes, require, seed_option

# Preset -> sizes of the network.
PRESETS: dict[str, dict[str, int]] = {
    "small": {"units": 256, "layers": 4, "heads": 4, "feed_forward": 1024},
    "smaller": {"units": 192, "layers": 3, "heads": 3, "feed_forward": 768},
    "tiny": {"units": 32, "layers": 1, "heads": 2, "feed_forward": 64},
}
HAN = ("words", "characters")
# A joined pair has three special tokens, and both sides need room for some pieces.
_FEWEST_POSITIONS, _MOST_POSITIONS = 8, 512
# Room for special tokens, and for some characters in both their forms.
_FEWEST_PIECES = 32


@dataclass(frozen=True)
class MaskedLmSettings(DeclaredSettings):
    """Hyper-parameters of a BERT.

    Masking follows Devlin et al. (2019), section 3.1; joined pairs follow Lample and Conneau (2019), section 3.3.

    Attributes:
        preset: one of `PRESETS`; determines the sizes that are 0 here.
        units, layers, heads, feed_forward: sizes of the network; 0 for those of the preset.
        positions: maximum number of tokens of a text or joined pair, including special tokens.
        vocabulary_size: maximum number of pieces, including special tokens.
        min_count: minimum count of a piece and of a character.
        han: `words`: a word of Chinese characters is segmented like any other; `characters`: each character is a piece,
            as in multilingual BERT.
        mask_share: share of the pieces that are predicted (0.15).
        dropout: share of components dropped in training.
        learning_rate: maximum step size of Adam.
        warm_up: share of the updates in which the step size rises; then it falls to 0.
        batch_tokens: tokens per update, including padding.
        epochs: passes over the text; the epoch with the smallest loss on the development set is kept.
        clip: maximum norm of the gradient.
        precision: float32, or bfloat16 for matrix products, which are most of the work: faster on CPUs that support it.
        seed: random seed.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "masked-lm"

    preset: str = option("small", f"Sizes of the BERT: {', '.join(PRESETS)}.", choices=PRESETS)
    units: int = option(0, f"Size of a hidden state; {preset_sizes(PRESETS, 'units')}.", ge=0)
    layers: int = option(0, f"Number of layers; {preset_sizes(PRESETS, 'layers')}.", ge=0)
    heads: int = option(0, f"Attention heads; {preset_sizes(PRESETS, 'heads')}.", ge=0)
    feed_forward: int = option(0, f"Feed-forward units; {preset_sizes(PRESETS, 'feed_forward')}.", ge=0)
    positions: int = option(
        128,
        "Maximum tokens of a text or joined pair.",
        ge=_FEWEST_POSITIONS,
        le=_MOST_POSITIONS,
    )
    vocabulary_size: int = option(16000, "Maximum number of subword units.", ge=_FEWEST_PIECES)
    min_count: int = option(2, "Minimum count of subword units and characters.", ge=1)
    han: str = option("words", f"Units of Chinese text: {' (split into subword units) or '.join(HAN)}.", choices=HAN)
    mask_share: float = option(0.15, "Share of the subword units to predict.", gt=0, lt=1)
    dropout: float = option(0.0, "Dropout.", ge=0, lt=1)
    learning_rate: float = option(0.001, "Maximum step size.", gt=0)
    warm_up: float = option(0.1, "Share of updates in which the step size rises.", ge=0, lt=1)
    batch_tokens: int = option(2048, "Tokens per update.")
    epochs: int = option(10, "Passes over the text; the best one is kept.", ge=1)
    clip: float = option(1.0, "Maximum norm of the gradient.", gt=0)
    precision: str = option(
        "float32", "Precision of matrix products in training: float32 or bfloat16.", choices=PRECISIONS
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        # A size of 0 is replaced by the preset's, so that the recorded sizes are those of the network.
        for name, size in PRESETS[self.preset].items():
            if getattr(self, name) == 0:
                object.__setattr__(self, name, size)
        require(self, self.units % self.heads == 0, "units", f"a multiple of the {self.heads} heads")
        require(self, self.batch_tokens >= self.positions, "batch_tokens", f"at least the {self.positions} positions")

    def rate_share(self, number: int, updates: int) -> float:
        """Return the share of the maximum step size for an update: it rises linearly during warm-up, then falls to 0.

        Args:
            number: number of the update, from 0.
            updates: total number of updates.
        """
        rising = max(1, round(self.warm_up * updates))
        if number < rising:
            return (number + 1) / rising
        return (updates - number) / max(1, updates - rising + 1)
