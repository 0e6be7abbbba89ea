"""Architecture of a classifier of sentence pairs, and hyper-parameters of its training.

The paper (Mao et al. 2021, section 2.3): one recurrent layer of 256 units per direction reads both languages, its last
states are concatenated with an embedding of the sentence length, and the inputs of a dense layer of 256 units are the
product and the difference of the two sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from phrasetool.nn.device import PRECISIONS
from phrasetool.options import SCHEDULES, DeclaredSettings, option, preset_sizes, require, seed_option

CELLS = ("bilstm", "lstm", "gru")
LENGTHS = ("none", "concat", "add", "shared")
# Vectors of the tokens of an external encoder: those of its embedding table, or contextual ones.
LAYERS = ("static", "contextual")


@dataclass(frozen=True)
class PairClassifierArchitecture:
    """Architecture and dimensions of a classifier.

    Attributes:
        inputs: `words`, with vectors of this model, or `folder`, the subword tokens of an external encoder.
        layer: one of `LAYERS`; ignored for words.
        tuned: whether the vectors of the external encoder are trained, too.
        characters: maximum length of the character n-grams that are added to words; 0 for none.
        cell: `bilstm`, `lstm` (one direction), or `gru` (two directions).
        word_units: w, size of the vector of a word or token.
        units: units of a state, per direction.
        hidden: units of the fully connected layer.
        length: use of the sentence length: `none`; `concat`, concatenated with the sentence vector, one table per
            language; `shared`, concatenated, one table for both; `add`, added to it, one table per language.
        length_units: size of the vector of a length; for `add` it is that of the sentence vector instead.
        longest: maximum number of words that are read; longer sentences are truncated.

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
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} is {value!r}, expected at least {least}")
        if type(self.tuned) is not bool:
            raise ValueError(f"tuned is {self.tuned!r}, expected true or false")

    @property
    def dimension(self) -> int:
        """n, size of a sentence vector."""
        return self.units * (1 if self.cell == "lstm" else 2)

    @property
    def joined(self) -> int:
        """Size of a sentence vector joined with its length."""
        return self.dimension + (self.length_units if self.length in ("concat", "shared") else 0)


# Name -> sizes.  `paper` has the sizes of the paper; `small` is for CPUs.
PRESETS: dict[str, dict[str, int]] = {
    "small": {"word_units": 128, "units": 128, "hidden": 128},
    "paper": {"word_units": 512, "units": 256, "hidden": 256},
}


WORDS, WORD2VEC, FOLDER = "words", "word2vec", "hf:"
# Values of the preset `paper` that differ from the defaults: it has nothing that the paper lacks, such as the in-batch
# loss and character n-grams.
_PRESET_OVERRIDES: dict[str, dict[str, Any]] = {
    "paper": {
        "characters": 0, "contrast": 0.0, "search_units": 0, "hidden_words": 0.0, "learning_rate": 0.0001,
        "schedule": "constant", "epochs": 15, "containment": 0, "dropout": 0.2,
    },
}  # fmt: skip


@dataclass(frozen=True)
class PairClassifierSettings(DeclaredSettings):
    """Settings of training.

    The values of Mao et al. (2021) are in brackets; they are the defaults of the preset `paper` in `from_options`.

    Attributes:
        encoder: inputs: `words`, with random initial vectors; `word2vec`, words with initial vectors of word2vec; or
            `hf:FOLDER`, the subword tokens of a BERT.
        tuned: whether the vectors of the folder are trained.
        preset: one of `PRESETS`, for the sizes that are 0 here.
        word_units, units, hidden: see `PairClassifierArchitecture` (512, 256, 256).
        cell, layer, length, length_units, characters: see `PairClassifierArchitecture`.
        parts: maximum number of character n-grams, the most frequent ones.
        hidden_words: share of words that training reads as unknown, by their n-grams only.
        negatives: negative targets from the batch, per source (5).
        containment: additional negatives per source: the target cut, or joined with another one (0).
        contrast: weight of the in-batch cross-entropy of sentence vectors, which makes their cosines meaningful (0).
        contrast_temperature: divisor of the cosines in this loss.
        search_units: size of search vectors; 0 for none (0).
        search_epochs: passes over the pairs that train search vectors.
        dropout: share of components of word vectors dropped in training (0.2).
        output_dropout: the same of sentence vectors and of the hidden layer.
        learning_rate: step size of Adam (0.0001).
        layers_learning_rate: step size of the layers of a tuned encoder, which the step size of the classifier would
            ruin; an embedding table that is tuned alone uses that of the classifier.
        precision: float32, or bfloat16 for the products of the layers of a tuned encoder, which are most of the work:
            faster on processors that support it.
        schedule: `constant`, or `linear`: the step size falls to 0 over the epochs.
        batch_size: sentence pairs per update (128).
        epochs: passes over the pairs; the epoch with the best F1 on the development set is kept (15).
        clip: maximum norm of the gradient (5).
        min_count: rarer words are read as unknown.
        vocabulary_size: maximum number of words, the most frequent ones; 0 for all.
        max_length: training pairs with more words on a side are left out; later, longer sentences are truncated.
        seed: random seed.

    Raises:
        ValueError: a value is out of range.
    """

    kind: ClassVar[str] = "parallel"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESET_OVERRIDES

    encoder: str = WORDS
    tuned: bool = False
    preset: str = option("small", f"Sizes of the classifier: {', '.join(PRESETS)}.", choices=PRESETS)
    word_units: int = option(0, f"Size of a word vector; {preset_sizes(PRESETS, 'word_units')}.", ge=0)
    units: int = option(0, f"LSTM units per direction; {preset_sizes(PRESETS, 'units')}.", ge=0)
    hidden: int = option(0, f"Units of the dense layer; {preset_sizes(PRESETS, 'hidden')}.", ge=0)
    cell: str = option("bilstm", f"Sentence encoder: {', '.join(CELLS)}.")
    layer: str = option("contextual", f"Vectors of hf:FOLDER: {', '.join(LAYERS)}.")
    length: str = option("concat", f"Use of sentence length: {', '.join(LENGTHS)}.")
    length_units: int = option(32, "Size of a length's vector.")
    characters: int = option(5, "Maximum length of character n-grams; 0: none.", ge=0)
    parts: int = option(30000, "Number of character n-grams.", ge=0)
    hidden_words: float = option(0.1, "Share of words read by n-grams only.", ge=0, lt=1)
    negatives: int = option(5, "Negative targets from the batch.", ge=0)
    containment: int = option(1, "Negatives that contain a translation.", ge=0)
    contrast: float = option(1.0, "Weight of the contrastive loss.", ge=0)
    contrast_temperature: float = option(0.05, "Temperature of the contrastive loss.", gt=0)
    search_units: int = option(256, "Size of search vectors; 0: none.", ge=0)
    search_epochs: int = option(12, "Passes that train search vectors.", ge=1)
    dropout: float = option(0.3, "Dropout.", ge=0, lt=1)
    output_dropout: float = option(0.0, "Dropout of sentence vectors.", ge=0, lt=1)
    learning_rate: float = option(0.003, "Step size.", gt=0)
    layers_learning_rate: float = option(0.0001, "Step size of tuned layers.", gt=0)
    precision: str = option("float32", "Tuned layers: float32 or bfloat16.", choices=PRECISIONS)
    schedule: str = option("linear", "Step size: constant, linear.", choices=SCHEDULES)
    batch_size: int = option(128, "Sentence pairs per update.", ge=1)
    epochs: int = option(5, "Passes over the pairs.", ge=1)
    clip: float = option(5.0, "Maximum norm of the gradient.", gt=0)
    min_count: int = option(2, "Rarer words are unknown.", ge=1)
    vocabulary_size: int = option(50000, "Maximum number of words; 0: all.", ge=0)
    max_length: int = option(100, "Maximum words of a side.", ge=1)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.encoder in (WORDS, WORD2VEC) or (self.folder is not None and self.folder != "")
        require(self, known, "encoder", f"{WORDS}, {WORD2VEC} or {FOLDER}FOLDER")
        require(self, self.negatives + self.containment >= 1, "negatives", "at least 1 without containment")
        _ = self.architecture(1)

    @property
    def folder(self) -> str | None:
        """Folder of the external encoder; None for words."""
        return self.encoder.removeprefix(FOLDER) if self.encoder.startswith(FOLDER) else None

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of the preset, or the values set instead."""
        return {name: getattr(self, name) or size for name, size in PRESETS[self.preset].items()}

    @property
    def passes(self) -> int:
        """Passes over the pairs, for the classifier and for search vectors."""
        return self.epochs + (self.search_epochs if self.search_units else 0)

    def architecture(self, width: int | None = None) -> PairClassifierArchitecture:
        """Return the architecture; `width` is the size of the vectors of an external encoder, which replaces w."""
        folder = self.folder is not None
        sizes = {**self.sizes, **({"word_units": width} if folder and width else {})}
        return PairClassifierArchitecture(
            inputs="folder" if folder else "words", layer=self.layer, tuned=self.tuned and folder,
            characters=0 if folder else self.characters, cell=self.cell, length=self.length,
            length_units=self.length_units, longest=self.max_length, **sizes,
        )  # fmt: skip
