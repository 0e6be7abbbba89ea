"""Hyper-parameters of a tagger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phrasetool.options import option, require
from phrasetool.tagger.tagger_shape import TaggerShape
from phrasetool.train.settings import DeclaredSettings


@dataclass(frozen=True)
class TaggerSettings(DeclaredSettings):
    """Everything that decides what training does.

    Attributes:
        buckets: rows of the table into which features are hashed.
        word_units, units, lstm_layers: see `TaggerShape`.
        dropout: share of components dropped in training, before and behind the LSTM.
        hidden_words: share of words that training reads by their parts alone.
        lower_cased: share of sentences that training reads without capitals, others in each epoch.
        min_joint: joined tags seen less often are not learnt.
        learning_rate: step size of Adam, which falls to nothing over the epochs.
        batch_size: sentences per update.
        epochs: passes over the sentences; the best on the development set is kept.
        clip: the gradient's norm, without features, is cut to this.
        seed: fixes everything.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "tagger"

    buckets: int = option(131072, "Rows of the table into which features of words are hashed.")
    word_units: int = option(64, "Size of the vector of a word, the sum of those of its features.")
    units: int = option(128, "Size of a state, a direction.")
    lstm_layers: int = option(1, "Layers of the LSTM.")
    dropout: float = option(0.3, "Share of components dropped in training.")
    hidden_words: float = option(0.2, "Share of words that training reads by their parts alone.")
    lower_cased: float = option(0.5, "Share of sentences that training reads without capitals.")
    min_joint: int = option(5, "Joined tags such as ADP+DET seen less often are not learnt.")
    learning_rate: float = option(0.004, "Step size of Adam; it falls to 0.")
    batch_size: int = option(32, "Sentences per update.")
    epochs: int = option(6, "Passes over the sentences.")
    clip: float = option(5.0, "The norm of the gradient is cut to this.")
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "min_joint"):
            require(self, getattr(self, name) >= 1, name, "at least 1")
        for name in ("dropout", "hidden_words"):
            require(self, 0 <= getattr(self, name) < 1, name, "at least 0 and less than 1")
        require(self, 0 <= self.lower_cased <= 1, "lower_cased", "from 0 to 1")
        for name in ("learning_rate", "clip"):
            require(self, getattr(self, name) > 0, name, "more than 0")
        require(self, 0 <= self.seed < 1 << 32, "seed", f"from 0 to {(1 << 32) - 1}")
        _ = self.shape(1)

    def shape(self, tags: int) -> TaggerShape:
        """The dimensions of a tagger for so many tags."""
        return TaggerShape(self.buckets, self.word_units, self.units, self.lstm_layers, tags)
