"""A trained classifier of sentence pairs that can be saved and loaded; its name in `config.json` is `parallel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError
from phrasetool.models.fit import ModelCompatibility, measure_fit
from phrasetool.models.saved_model import SavedModel, model_identity
from phrasetool.pair_classifier.settings import PairClassifierArchitecture
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask, Phrases
from phrasetool.smt.corpus.symbols import read_words, sentence_lengths
from phrasetool.text_encoders.text_encoder import SIDES, Side
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

if TYPE_CHECKING:
    from phrasetool.pair_classifier.inputs import PretrainedInputs
    from phrasetool.pair_classifier.network import PairClassifier, SearchVectors


# Files of models that read words: vocabularies of words and of character n-grams.
_VOCABULARIES = ("source.vocab", "target.vocab", "source.parts", "target.parts")
# Folder of models that read subword tokens: the encoder, which other programs can read, too.
ENCODER = "encoder"
# Array of models with separate search vectors: the vectors of the units.
SEARCH_VECTORS = "search.units"
# Names of the thresholds in `config.json`.
_THRESHOLDS = ("half", "best")


class PairClassifierModel(SavedModel):
    """Vocabularies and arrays of a classifier.

    Args:
        vocabularies: words of source and target, n-grams of source and target; empty with an encoder.
        architecture: architecture and dimensions of the classifier.
        arrays: float32, see `PairClassifier.arrays`; and optionally `SEARCH_VECTORS`, see `SearchVectors`.
        temperature: divisor of the logits that calibrates them.
        thresholds: lowest probability of a pair called parallel: `half`, and `best` on the development set.
        training: record of the training, kept in `config.json`.
        encoder: encoder of subword tokens; None for a model that reads words.

    Raises:
        KeyError: an array is missing.
        ValueError: an array or the temperature is invalid, or does not match the rest.
    """

    name = "parallel"

    def __init__(
        self,
        vocabularies: Sequence[Vocabulary],
        architecture: PairClassifierArchitecture,
        arrays: Mapping[str, npt.NDArray[Any]],
        temperature: float,
        thresholds: Mapping[str, float],
        training: Mapping[str, Any] | None = None,
        encoder: PretrainedInputs | None = None,
    ) -> None:
        self.vocabularies, self.architecture, self.encoder = list(vocabularies), architecture, encoder
        self.arrays = dict(arrays)
        for (side, kind), vocabulary in zip(
            ((side, kind) for kind in ("words", "parts") for side in SIDES), self.vocabularies, strict=False
        ):
            shape = (len(vocabulary), architecture.word_units)
            if arrays[f"inputs.{side}.{kind}"].shape != shape:
                shape_of_array = arrays[f"inputs.{side}.{kind}"].shape
                raise ValueError(f"{kind} of the {side} have shape {shape_of_array}, expected {shape}")
        if (vectors := self.arrays.get(SEARCH_VECTORS)) is not None and not np.isfinite(vectors).all():
            raise ValueError("the vectors of units are not all finite")
        if not 0 < temperature < np.inf:
            raise ValueError(f"the temperature is {temperature}, expected a finite number above 0")
        self.temperature, self.thresholds = temperature, dict(thresholds)
        self.training = dict(training or {})

    @cached_property
    def classifier(self) -> PairClassifier:
        """The network and its inputs, on the CPU, in evaluation mode.

        Raises:
            ModelError: the arrays do not match the architecture.
        """
        from phrasetool.pair_classifier.inputs import WordSides
        from phrasetool.pair_classifier.network import PairClassifier, SiameseNetwork, input_arrays, network_arrays

        try:
            network = SiameseNetwork.from_arrays(self.architecture, network_arrays(self.arrays))
        except RuntimeError as error:
            raise ModelError(f"the weights do not fit the architecture ({error})") from error
        if self.encoder is not None:
            return PairClassifier(self.encoder, network).eval()
        source, target, source_parts, target_parts = self.vocabularies
        characters = self.architecture.characters
        inputs = WordSides((source, target), (source_parts, target_parts), characters, input_arrays(self.arrays))
        return PairClassifier(inputs, network).eval()

    @property
    def dimension(self) -> int:
        """n, size of a sentence vector."""
        return self.architecture.dimension

    @cached_property
    def search(self) -> SearchVectors | None:
        """Search vectors of sentences; None if sentence vectors are used for the search, too.

        Raises:
            ModelError: their array has an invalid shape.
        """
        if SEARCH_VECTORS not in self.arrays:
            return None
        from phrasetool.pair_classifier.network import SearchVectors

        try:
            return SearchVectors(self.arrays[SEARCH_VECTORS])
        except ValueError as error:
            raise ModelError(str(error)) from error

    @property
    def search_dimension(self) -> int:
        """Size of the vectors of `search_vectors`."""
        return self.search.dimension if self.search else self.dimension

    def search_vectors(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Return vectors of N sentences whose cosines are high for translations.

        Args:
            sentences, side: see `encode`.

        Returns:
            float32, shape (N, d); zeros for a sentence without words.
        """
        return self.search.encode(*read_words(sentences)) if self.search else self.encode(sentences, side)

    def encode(self, sentences: Sequence[str | bytes], side: Side) -> FloatArray:
        """Return the vectors of N sentences, without their lengths.

        Distinct sentences are encoded once, in batches that depend on the sentences only; the other sentences affect
        no more than the last bits of a sentence's vector.

        Args:
            sentences: words between spaces, tokenised like the training data; Moses' escapes are undone.
            side: side of the sentences.

        Returns:
            float32, shape (N, n); zeros for a sentence without known words.

        Raises:
            UnicodeDecodeError: a sentence is not UTF-8, and the model reads subword tokens.
        """
        texts, words = read_words(sentences)
        return self.encode_texts(texts, words, side)

    def encode_texts(self, texts: Phrases, words: Sequence[bytes], side: Side) -> FloatArray:
        """Return the vectors of sentences in indices of their distinct words, without escapes; see `encode`."""
        return self.classifier.sentence_vectors(SIDES.index(side), texts, words)

    def classify(
        self, sources: FloatArray, source_lengths: Int64Array, targets: FloatArray, target_lengths: Int64Array
    ) -> DoubleArray:
        """Return the probabilities of N encoded pairs of sentences.

        Args:
            sources, targets: results of `encode`, shape (N, n).
            source_lengths, target_lengths: results of `sentence_lengths`, shape (N,).

        Returns:
            float64, shape (N,), calibrated on the development set; 0 where a side has no known words.
        """
        logits = self.classifier.pair_logits(sources, source_lengths, targets, target_lengths)
        return probabilities_of(logits, self.temperature)

    def probabilities(self, sources: Sequence[str | bytes], targets: Sequence[str | bytes]) -> DoubleArray:
        """Return the probabilities that N pairs of sentences are translations of each other, float64, shape (N,).

        Args:
            sources, targets: N sentences each, see `encode`.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets, expected as many")
        (first, first_words), (second, second_words) = read_words(sources), read_words(targets)
        return self.classify(
            self.encode_texts(first, first_words, "source"), first.lengths,
            self.encode_texts(second, second_words, "target"), second.lengths,
        )  # fmt: skip

    def over_long(self, sentences: Sequence[str | bytes]) -> int:
        """Return the number of sentences that are truncated."""
        return int(self.truncated(sentences).sum())

    def truncated(self, sentences: Sequence[str | bytes]) -> Mask:
        """Return which sentences have more words, or subword tokens of the encoder, than are read; bool, shape (N,).

        Raises:
            UnicodeDecodeError: a sentence is not UTF-8, and the model reads subword tokens.
        """
        many_words: Mask = sentence_lengths(sentences) > self.architecture.longest
        if self.encoder is None:
            return many_words
        texts, words = read_words(sentences)
        return many_words | self.encoder.over_long(texts, [word.decode() for word in words])

    def description(self) -> dict[str, Any]:
        """Return the entries of `config.json`."""
        return {
            "architecture": asdict(self.architecture),
            "temperature": self.temperature,
            "thresholds": self.thresholds,
            "dimension": self.dimension,
        }

    def facts(self) -> dict[str, Any]:
        """Return the facts that `inspect` shows."""
        shape = {**asdict(self.architecture), "temperature": self.temperature, "thresholds": self.thresholds}
        return {"architecture": shape, "numbers": sum(array.size for array in self.arrays.values())}

    def named_vocabularies(self) -> dict[str, Vocabulary]:
        """Return the vocabularies, by the names of their files."""
        return dict(zip(SIDES, self.vocabularies, strict=False))

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight or a word differs."""
        # "SiameseArchitecture" was the name of the class when models were first saved.
        sizes = ", ".join(f"{name}={value!r}" for name, value in asdict(self.architecture).items())
        head, arrays = f"(SiameseArchitecture({sizes}), {self.temperature!r})".encode(), dict(self.arrays)
        if self.encoder is not None:
            arrays |= {name: value.detach().cpu().numpy() for name, value in self.encoder.state_dict().items()}
            head += self.encoder.tokenizer_text
        return model_identity(head, arrays, tuple(self.vocabularies))

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        a = self.architecture
        inputs = f"{a.layer}-pieces" if a.inputs == "folder" else "words"
        return f"model:{self.name}-{self.identity}|inputs:{inputs}|cell:{a.cell}|length:{a.length}|n:{self.dimension}"

    def save_files(self, folder: Path) -> None:
        """Write the vocabularies, or the encoder as a folder."""
        for vocabulary, file in zip(self.vocabularies, _VOCABULARIES, strict=False):
            vocabulary.save(folder / file)
        if self.encoder is not None:
            self.encoder.save(folder / ENCODER)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> PairClassifierModel:
        """Return the model that a folder holds.

        Raises:
            ModelError: a vocabulary, the encoder or the architecture cannot be read.
            KeyError, ValueError: weights are missing, or do not match the architecture.
        """
        try:
            architecture = PairClassifierArchitecture(**config["architecture"])
            temperature = float(config["temperature"])
            thresholds = {str(name): float(value) for name, value in dict(config["thresholds"]).items()}
            for name in _THRESHOLDS:
                if not 0 <= thresholds.get(name, np.nan) <= 1:
                    raise ValueError(f"the threshold {name!r} is missing or is not a probability")
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe the architecture ({error})") from error
        encoder, vocabularies = None, []
        if architecture.inputs == "folder":
            from phrasetool.pair_classifier.inputs import PretrainedInputs

            encoder = PretrainedInputs(folder / ENCODER, architecture.layer, architecture.tuned)
        else:
            vocabularies = [Vocabulary.load(folder / file) for file in _VOCABULARIES]
        training = config.get("training", {})
        return cls(vocabularies, architecture, weights, temperature, thresholds, training, encoder)


def probabilities_of(logits: DoubleArray, temperature: float = 1.0) -> DoubleArray:
    """Return 1 / (1 + exp(-logit / temperature)), shape (N,)."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-logits / temperature)))


def fit_of_pairs(
    model: PairClassifierModel, sources: Sequence[bytes], targets: Sequence[bytes], swapped: bool = False,
    sentences: bool = True,
) -> ModelCompatibility:  # fmt: skip
    """Measure how well a classifier fits pairs, see `measure_fit`.

    A model that reads subword tokens knows every word; then only the AUC is informative.

    Args:
        model: classifier of sentence pairs.
        sources, targets: N sentences or phrases each, words between spaces.
        swapped: whether to measure the fit with source and target swapped.
        sentences: whether these are sentences, not phrases: pairs with a word on both sides are not left out.
    """
    texts = (targets, sources) if swapped else (sources, targets)
    sides, vocabularies = [], []
    for which, lines in enumerate(texts):
        phrases, words = read_words(lines)
        vocabulary = model.vocabularies[which] if model.vocabularies else _vocabulary(words)
        known = {word: number for number, word in enumerate(vocabulary.words)}
        ids = np.array([known.get(word, UNKNOWN) for word in words], np.int32)
        sides.append(Phrases(phrases.offsets, ids[phrases.words] if words else phrases.words))
        vocabularies.append(vocabulary)
    source, target = vocabularies

    def compare(some: Phrases, others: Phrases) -> Callable[[Int64Array, Int64Array], FloatArray]:
        vectors = [_encode(model, some, source, SIDES[0]), _encode(model, others, target, SIDES[1])]

        def fits(rows: Int64Array, numbers: Int64Array) -> FloatArray:
            logits = model.classify(vectors[0][rows], some.lengths[rows], vectors[1][numbers], others.lengths[numbers])
            return logits.astype(np.float32)

        return fits

    return measure_fit(compare, (sides[0], sides[1]), (source, target), texts, shared=sentences)


def _vocabulary(words: Sequence[bytes]) -> Vocabulary:
    return Vocabulary([UNKNOWN_WORD, *(word for word in words if word != UNKNOWN_WORD)])


def _encode(model: PairClassifierModel, phrases: Phrases, vocabulary: Vocabulary, side: Side) -> FloatArray:
    """Return the vectors of phrases in ids of a vocabulary; only the words that occur in them are looked up."""
    used, positions = np.unique(phrases.words, return_inverse=True)
    words = [vocabulary.words[number] for number in used.tolist()]
    return model.encode_texts(Phrases(phrases.offsets, positions.astype(np.int32)), words, side)
