"""Dimensions of a tagger and hyper-parameters of its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from phrasetool.options import DeclaredSettings, option, seed_option


@dataclass(frozen=True)
class TaggerShape:
    """Dimensions of a tagger.

    Attributes:
        buckets: rows of the table of feature vectors, including the row that stands for no feature.
        word_units: size of a feature vector.
        units: size of an LSTM state per direction.
        lstm_layers: layers of the LSTM.
        tags: number of tags.

    Raises:
        ValueError: a value is out of range.
    """

    buckets: int
    word_units: int
    units: int
    lstm_layers: int
    tags: int

    def __post_init__(self) -> None:
        for name, least in (("buckets", 2), ("word_units", 1), ("units", 1), ("lstm_layers", 1), ("tags", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} is {value!r}, expected at least {least}")

    def array_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every array of a tagger."""
        shapes: dict[str, tuple[int, ...]] = {"features.weight": (self.buckets, self.word_units)}
        for layer in range(self.lstm_layers):
            size = self.word_units if layer == 0 else 2 * self.units
            for end in (f"l{layer}", f"l{layer}_reverse"):
                shapes[f"lstm.weight_ih_{end}"] = (4 * self.units, size)
                shapes[f"lstm.weight_hh_{end}"] = (4 * self.units, self.units)
                shapes[f"lstm.bias_ih_{end}"] = shapes[f"lstm.bias_hh_{end}"] = (4 * self.units,)
        return {**shapes, "output.weight": (self.tags, 2 * self.units), "output.bias": (self.tags,)}


@dataclass(frozen=True)
class TaggerSettings(DeclaredSettings):
    """Hyper-parameters of a tagger.

    Attributes:
        buckets: rows of the table into which features are hashed.
        word_units, units, lstm_layers: see `TaggerShape`.
        dropout: share of components dropped in training, before and after the LSTM.
        hidden_words: share of training words whose feature for the whole word is masked.
        lower_cased: share of training sentences that are lower-cased, drawn again in each epoch.
        min_joint: minimum count of a joined tag in training; rarer ones are not learnt.
        learning_rate: initial step size of Adam; it falls to 0 over the epochs.
        batch_size: sentences per update.
        epochs: passes over the sentences; the best epoch on the development set is kept.
        clip: maximum norm of the gradient of all parameters except the feature vectors.
        seed: random seed.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "tagger"

    buckets: int = option(131072, "Number of hash buckets for word features.")
    word_units: int = option(64, "Size of a feature vector; a word is their sum.")
    units: int = option(128, "LSTM units per direction.")
    lstm_layers: int = option(1, "Number of LSTM layers.")
    dropout: float = option(0.3, "Dropout.", ge=0, lt=1)
    hidden_words: float = option(0.2, "Share of words read by prefixes, suffixes and shape only.", ge=0, lt=1)
    lower_cased: float = option(0.5, "Share of sentences read in lower case.", ge=0, le=1)
    min_joint: int = option(5, "Minimum count of joined tags such as ADP+DET.", ge=1)
    learning_rate: float = option(0.004, "Initial step size; it falls to 0.", gt=0)
    batch_size: int = option(32, "Sentences per update.", ge=1)
    epochs: int = option(6, "Passes over the sentences.", ge=1)
    clip: float = option(5.0, "Maximum norm of the gradient.", gt=0)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.shape(1)

    def shape(self, tags: int) -> TaggerShape:
        """Return the dimensions of a tagger with this number of tags."""
        return TaggerShape(self.buckets, self.word_units, self.units, self.lstm_layers, tags)
