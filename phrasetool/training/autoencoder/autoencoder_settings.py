"""Hyper-parameters of a text autoencoder; the defaults are for a CPU, the paper's values stand beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phrasetool.encoders.autoencoders.architecture import ARCHITECTURES, TextArchitecture
from phrasetool.nn.device import PRECISIONS
from phrasetool.nn.positions import LONGEST
from phrasetool.options import option, seed_option
from phrasetool.train.settings import DeclaredSettings


@dataclass(frozen=True)
class AutoencoderSettings(DeclaredSettings):
    """Everything that decides what training does.  Zhang, Wu, Li and Zhang, table 1, have the values in brackets.

    Attributes:
        architecture: one of `phrasetool.encoders.autoencoders.architecture.ARCHITECTURES`.
        word_units: w (512).
        hidden: m (1024).
        heads: h (8).
        feed_forward: d; 0 for as many as hidden units.
        dropout: share of components dropped (0.2).
        learning_rate: step size of Adam at first (0.0002, constant); it falls to nothing over the epochs, linearly.
        batch_size: texts per update (32).
        epochs: passes over the texts.
        clip: the gradient's norm is cut to this (5).
        min_count: words seen less often are read as unknown.
        vocabulary_size: of the others, so many of the most frequent are kept; 0 for all (25000 and 33090).
        precision: float32, or bfloat16 for the products with the output's matrix, most of the work: faster on
            processors that have it.
        max_length: texts with more words are left out.
        seed: fixes everything.
    """

    kind: ClassVar[str] = "autoencoder"

    architecture: str = option("mean-max", f"Which autoencoder: {', '.join(ARCHITECTURES)}.")
    word_units: int = option(128, "Size of a word vector.")
    hidden: int = option(256, "Hidden units.")
    heads: int = option(4, "Attention heads; must divide the hidden units.")
    feed_forward: int = option(0, "Units of the feed-forward layers; 0: as many as hidden units.", ge=0)
    dropout: float = option(0.2, "Share of components dropped in training.", ge=0, lt=1)
    learning_rate: float = option(0.002, "Step size of Adam at first; it falls to 0 over the epochs.", gt=0)
    batch_size: int = option(64, "Texts per update.", ge=1)
    epochs: int = option(10, "Passes over the texts.", ge=1)
    clip: float = option(5.0, "The norm of the gradient is cut to this.", gt=0)
    min_count: int = option(3, "Words seen less often are read as unknown.", ge=1)
    vocabulary_size: int = option(0, "Keep so many of the most frequent words; 0: all.", ge=0)
    max_length: int = option(LONGEST, "Leave out texts with more words.", ge=1, le=LONGEST)
    precision: str = option(
        "float32", "Of the products with the output's matrix: float32 or bfloat16.", choices=PRECISIONS
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.shape

    @property
    def shape(self) -> TextArchitecture:
        """The autoencoder and its dimensions."""
        return TextArchitecture(
            self.architecture, self.word_units, self.hidden, self.heads, self.feed_forward or self.hidden
        )
