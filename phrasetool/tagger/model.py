"""A trained tagger, which tags words without torch, and its accuracy on treebanks.

Its name in `config.json` is `tagger`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.kernels.lstm_states import LstmWeights, lstm_states
from phrasetool.models.saved_model import SavedModel, check_arrays, model_identity
from phrasetool.phrases import FloatArray, Int32Array, Phrases, prefix_sums
from phrasetool.tagger.data import JOINT, UPOS, TaggedSentence, Treebanks, feature_rows, lower_cased
from phrasetool.tagger.settings import TaggerShape

# Sentences whose accuracy is measured together.
_SENTENCES = 512


class TaggerModel(SavedModel):
    """Part-of-speech tagger of several languages.

    Args:
        languages: languages of the treebanks that it was trained on.
        tags: the universal parts of speech, followed by joined ones.
        shape: dimensions of the tagger.
        arrays: parameters by name, float32, see `TaggerNetwork.arrays`.
        training: record of the training, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: the number of tags, or the shape or type of an array, does not match `shape`; or a parameter is not
            finite.
    """

    name = "tagger"

    def __init__(
        self, languages: Sequence[str], tags: Sequence[str], shape: TaggerShape, arrays: Mapping[str, FloatArray],
        training: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.languages, self.tags, self.shape = tuple(languages), tuple(tags), shape
        if self.tags[: len(UPOS)] != UPOS or len(self.tags) != shape.tags:
            raise ValueError(f"{len(self.tags)} tags, expected {shape.tags}, the {len(UPOS)} universal ones first")
        check_arrays(arrays, shape.array_shapes())
        self.arrays = {name: arrays[name] for name in shape.array_shapes()}
        self.training = dict(training or {})

    def check_language(self, language: str) -> None:
        """Raise an error for a language that the tagger was not trained on.

        Raises:
            ValueError: the language is unknown; the message lists the known ones.
        """
        if language not in self.languages:
            raise ValueError(f"unknown language {language!r}; the tagger knows {', '.join(self.languages)}")

    def tag(self, sentences: Sequence[Sequence[str]], language: str, joined: bool = True) -> list[list[str]]:
        """Return the most probable tag of each word of N sentences.

        Args:
            sentences: words as tokenised by Moses, without its escapes; a sentence may be empty.
            language: language of all sentences.
            joined: whether a token that stands for two words may get a joined tag such as `ADP+DET`.

        Raises:
            ValueError: the language is unknown.
        """
        self.check_language(language)
        tags = self.tags if joined else UPOS
        ids: dict[str, int] = {}
        words = [ids.setdefault(word, len(ids)) for sentence in sentences for word in sentence]
        offsets = prefix_sums([len(sentence) for sentence in sentences])
        texts = Phrases(offsets, np.array(words, np.int32))
        scores = tag_scores(self.arrays, self.shape, texts, feature_rows(list(ids), language, self.shape.buckets))
        best = np.argmax(scores[:, : len(tags)], axis=1).tolist()
        return [[tags[number] for number in best[first:last]] for first, last in itertools.pairwise(offsets.tolist())]

    def universal_tags(self, sentences: Sequence[Sequence[str]], language: str) -> list[list[int]]:
        """Return the universal tags of N sentences by their positions in `UPOS`, several for a joined tag.

        Args:
            sentences, language: see `tag`.

        Raises:
            ValueError: the language is unknown.
        """
        numbers = {tag: [UPOS.index(part) for part in tag.split(JOINT)] for tag in self.tags}
        return [[number for tag in tags for number in numbers[tag]] for tags in self.tag(sentences, language)]

    def description(self) -> dict[str, Any]:
        """Return the description of the model for `config.json`."""
        return {
            "languages": list(self.languages),
            "tags": list(self.tags),
            "shape": asdict(self.shape),
        }

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight, a tag or a language differs."""
        return model_identity(repr((self.languages, self.tags, self.shape)), self.arrays, ())

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|languages:{','.join(self.languages)}|tags:{len(self.tags)}"

    def save_files(self, folder: Path) -> None:
        """Write nothing: features are hashed, so a tagger has no vocabulary."""

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> TaggerModel:
        """Return the model that a folder holds.

        Raises:
            ModelError: `config.json` does not describe a tagger.
            KeyError, ValueError: weights are missing, or do not match `config.json`.
        """
        try:
            languages, tags = ([str(value) for value in config[name]] for name in ("languages", "tags"))
            shape = TaggerShape(**config["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe a tagger ({error})") from error
        return cls(languages, tags, shape, weights, config.get("training", {}))


def tag_scores(
    arrays: Mapping[str, FloatArray], shape: TaggerShape, sentences: Phrases, rows: Int32Array
) -> FloatArray:
    """Return the logits of the tags of each word, float32, shape (words, tags).

    Args:
        arrays: parameters by name, see `TaggerNetwork.arrays`.
        shape: dimensions of the tagger.
        sentences: B sentences, as ids of N distinct words.
        rows: F features of each distinct word, shape (N, F).
    """
    table = arrays["features.weight"]
    # Columns are added in a fixed order, so that the vector of a word does not depend on the other words.
    words = np.zeros((len(rows), shape.word_units), np.float32)
    for column in rows.T:
        words += table[column]
    # The products of the first layer are computed once per distinct word.
    inputs, ids = words, sentences.words
    for layer in range(shape.lstm_layers):
        ends = [LstmWeights.of(arrays, f"lstm.{{}}_l{layer}{end}") for end in ("", "_reverse")]
        sides = [lstm_states(w.products(inputs), ids, w.recurrent, sentences, w is ends[1]) for w in ends]
        inputs, ids = np.concatenate(sides, axis=1), np.arange(len(sentences.words), dtype=np.int32)
    logits: FloatArray = inputs @ arrays["output.weight"].T + arrays["output.bias"]
    return logits


@dataclass(frozen=True)
class TagAccuracy:
    """Accuracy of a tagger on a treebank.

    Attributes:
        sentences, words: size of the treebank.
        accuracy: share of words that are tagged correctly.
        lower_accuracy: the same for the lower-cased sentences.
        by_tag: tag -> share of its words that are tagged correctly, with capitals as written.
    """

    sentences: int
    words: int
    accuracy: float
    lower_accuracy: float
    by_tag: Mapping[str, float]


def tag_accuracy(model: TaggerModel, sentences: Sequence[TaggedSentence], language: str) -> TagAccuracy:
    """Measure a tagger on sentences of a treebank, whose words all have a universal tag.

    Args:
        model: the tagger; its joined tags are not predicted.
        sentences: at least one sentence.
        language: language of the sentences.

    Raises:
        ValueError: the language is unknown.
    """
    right, right_lower, words = 0, 0, 0
    by_tag = {tag: [0, 0] for tag in UPOS}
    for first in range(0, len(sentences), _SENTENCES):
        part = sentences[first : first + _SENTENCES]
        forms = [list(sentence.words) for sentence in part]
        as_written = model.tag(forms, language, joined=False)
        lower = model.tag([lower_cased(tokens) for tokens in forms], language, joined=False)
        for sentence, predicted, predicted_lower in zip(part, as_written, lower, strict=True):
            for gold, tag, tag_lower in zip(sentence.tags, predicted, predicted_lower, strict=True):
                words, right, right_lower = words + 1, right + (tag == gold), right_lower + (tag_lower == gold)
                by_tag[gold][0] += tag == gold
                by_tag[gold][1] += 1
    shares = {tag: correct / count for tag, (correct, count) in by_tag.items() if count}
    return TagAccuracy(len(sentences), words, right / words, right_lower / words, shares)


def tag_accuracies(model: TaggerModel, treebanks: Treebanks) -> dict[str, TagAccuracy]:
    """Measure a tagger on the treebank of each language, see `tag_accuracy`."""
    return {language: tag_accuracy(model, sentences, language) for language, sentences in treebanks.items()}
