"""A trained syntactic encoder, which encodes texts, finds texts of similar syntax, and scores sequences of tags.

Its name in `config.json` is `syntax`.  Vectors of texts and log-probabilities of tag sequences are computed without
torch.  The last bits of a matrix product depend on its size, so batches depend on the texts only: distinct texts,
sorted by length and content.  One thread computes a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.kernels.lstm_states import LstmWeights, lstm_states, lstm_step
from phrasetool.models.fit import ModelCompatibility, measure_fit
from phrasetool.models.saved_model import SavedModel, check_arrays, model_identity
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.smt.corpus.symbols import read_words
from phrasetool.syntax.data import PieceTable, known_pieces
from phrasetool.syntax.settings import END, SyntaxShape
from phrasetool.tagger.model import TaggerModel
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import distinct_phrases, number_distinct
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary, unescape

# Texts per batch: as many as keep their states in the processor's cache.
_BATCH = 256
# Pieces whose products with the first layer are computed together.
_ROWS = 4096
_PIECES = "pieces.model"
# Name of the stored array of the pieces that were seen in training, one byte per piece.
_KNOWN = "pieces.known"


class SyntaxVectors:
    """The encoder.

    Args:
        arrays: parameters by name, see `SyntaxNetwork.arrays`.
        shape: dimensions of the encoder.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape) -> None:
        self._layers = [
            [LstmWeights.of(arrays, f"encoder.{layer}.{{}}_l0{end}") for end in ("", "_reverse")]
            for layer in range(shape.layers)
        ]
        table = arrays["pieces.weight"]
        # The products of pieces with the first layer are computed once for all texts, in blocks of a fixed size.
        self._first = [
            np.concatenate([weights.products(table[i : i + _ROWS]) for i in range(0, len(table), _ROWS)])
            for weights in self._layers[0]
        ]
        self._dimension = shape.dimension

    def __call__(self, texts: Phrases) -> FloatArray:
        """Return the vectors of N texts, float32, shape (N, 2 units); zeros for a text without pieces.

        Args:
            texts: texts as piece ids.
        """
        numbers, distinct = distinct_phrases(texts)
        vectors = np.zeros((len(distinct), self._dimension), np.float32)
        order = in_order(distinct)
        order = order[distinct.lengths[order] > 0]
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            batch = distinct.select(rows)
            vectors[rows] = np.maximum.reduceat(self.outputs(batch), batch.offsets[:-1])
        result: FloatArray = vectors[numbers]
        return result

    def outputs(self, texts: Phrases, last: list[FloatArray] | None = None) -> FloatArray:
        """Return the outputs of the last layer at each piece, computed as one batch, float32, shape (pieces, 2 units).

        Args:
            texts: N texts, none without pieces.
            last: if given, the last states, then the last cells, of each layer and direction are appended to it, each
                of shape (N, units).
        """
        ids = texts.words
        inputs = np.zeros((0, self._dimension), np.float32)
        states: list[FloatArray] = []
        cells: list[FloatArray] = []
        for layer, weights in enumerate(self._layers):
            products = [w.products(inputs) for w in weights] if layer else self._first
            ends = [np.zeros((len(texts), len(w.recurrent)), np.float32) for w in weights]
            sides = [
                lstm_states(product, ids, w.recurrent, texts, backward, end if last is not None else None)
                for product, w, backward, end in zip(products, weights, (False, True), ends, strict=True)
            ]
            states += [sides[0][texts.offsets[1:] - 1], sides[1][texts.offsets[:-1]]]
            cells += ends
            inputs, ids = np.concatenate(sides, axis=1), np.arange(len(texts.words), dtype=np.int32)
        if last is not None:
            last += [*states, *cells]
        return inputs


def in_order(texts: Phrases) -> Int64Array:
    """Return the order of texts sorted by length, then by pieces, int64, shape (N,)."""
    matrix = texts.padded(int(texts.lengths.max(initial=0)), -1)
    return np.lexsort((*matrix.T[::-1], texts.lengths))


_BATCH = 256


class TagLikelihood:
    """The decoder: scores sequences of parts of speech, given a text.

    Args:
        arrays: parameters by name, see `SyntaxNetwork.arrays`.
        shape: dimensions of encoder and decoder.
        vectors: encoder with the same arrays.
    """

    def __init__(self, arrays: Mapping[str, FloatArray], shape: SyntaxShape, vectors: SyntaxVectors) -> None:
        self._shape, self._vectors = shape, vectors
        self._arrays = arrays
        weights = LstmWeights.of(arrays, "decoder.{}_l0")
        own = shape.tag_units
        # The products of a tag with the gates are the same at every step.
        self._tags: FloatArray = arrays["tags.weight"] @ weights.inputs[:own]
        self._rest = LstmWeights(weights.inputs[own:], weights.recurrent, weights.bias)

    def __call__(self, texts: Phrases, tags: Phrases, language: int) -> FloatArray:
        """Return the mean log-probability of the tags and of the end of N sequences, float32, shape (N,).

        Args:
            texts: N texts as piece ids, none without pieces.
            tags: sequence of tags for each text, none empty.
            language: number of the language of the tags.
        """
        numbers, firsts = number_distinct(texts)
        distinct = texts.select(firsts)
        vectors, begins = self._encoded(distinct, language)
        # Each distinct combination of a text and a sequence is scored once.
        keyed = Phrases(tags.offsets + np.arange(len(tags) + 1), _with_first(tags, numbers))
        rows, representatives = number_distinct(keyed)
        scores = np.zeros(len(representatives), np.float32)
        distinct_tags, text_of = tags.select(representatives), numbers[representatives]
        order = in_order(keyed.select(representatives))
        for first in range(0, len(order), _BATCH):
            part = order[first : first + _BATCH][::-1]
            scores[part] = self._batch(vectors[text_of[part]], begins[text_of[part]], distinct_tags.select(part))
        result: FloatArray = scores[rows]
        return result

    def _encoded(self, texts: Phrases, language: int) -> tuple[FloatArray, FloatArray]:
        """Return the products of N distinct texts with the gates, and the decoder's initial states and cells."""
        deep = self._shape.decoder_units
        products = np.zeros((len(texts), 4 * deep), np.float32)
        begins = np.zeros((len(texts), 2 * deep), np.float32)
        language_vector = self._arrays["languages.weight"][language]
        order = in_order(texts)
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            batch, last = texts.select(rows), list[FloatArray]()
            vectors = np.maximum.reduceat(self._vectors.outputs(batch, last), batch.offsets[:-1])
            inputs = np.concatenate([np.tile(language_vector, (len(rows), 1)), vectors], axis=1)
            products[rows] = self._rest.products(inputs)
            start = np.concatenate(last, axis=1) @ self._arrays["start.weight"].T
            begins[rows] = start + self._arrays["start.bias"]
        return products, begins

    def _batch(self, products: FloatArray, begins: FloatArray, tags: Phrases) -> FloatArray:
        """Score N pairs of a text and a sequence of tags, the longest sequence first."""
        deep = self._shape.decoder_units
        state, cell = np.ascontiguousarray(begins[:, :deep]), np.ascontiguousarray(begins[:, deep:])
        lengths: Int64Array = tags.lengths
        targets = tags.padded(int(lengths[0]) + 1, END)
        total = np.zeros(len(tags), np.float32)
        before = np.full(len(tags), END, np.int32)
        for time in range(int(lengths[0]) + 1):
            active = int(np.searchsorted(-lengths, -time, "right"))
            gates = products[:active] + self._tags[before[:active]] + state[:active] @ self._rest.recurrent
            state, cell = lstm_step(gates, cell[:active])
            logits: FloatArray = state @ self._arrays["output.weight"].T + self._arrays["output.bias"]
            logits -= logits.max(1, keepdims=True)
            before = targets[:active, time]
            total[:active] += logits[np.arange(active), before] - np.log(np.exp(logits).sum(1))
        return np.asarray(total / (lengths + 1), np.float32)


def _with_first(phrases: Phrases, numbers: Int64Array) -> Int32Array:
    """Return the words of all phrases, with its number prepended to each phrase."""
    words = np.empty(len(phrases.words) + len(phrases), np.int32)
    heads = phrases.offsets[:-1] + np.arange(len(phrases))
    inside = np.ones(len(words), np.bool_)
    inside[heads] = False
    words[heads], words[inside] = numbers, phrases.words
    return words


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Scale vectors, shape (N, n), to length 1; zero vectors stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


class SyntaxModel(SavedModel):
    """Subword units, and the parameters of an encoder and its decoder.

    Args:
        languages: languages that the encoder was trained to read.
        targets: those of them whose parts of speech it was trained to predict.
        pieces: segmentation of words into subword units.
        known: which pieces were seen in training, bool, shape (pieces,).
        shape: dimensions of encoder and decoder.
        arrays: parameters by name, float32, see `SyntaxNetwork.arrays`.
        training: record of the training, kept in `config.json`.

    Raises:
        KeyError: an array is missing.
        ValueError: the number of pieces or target languages, or the shape or type of an array, differs from `shape`;
            or a parameter is not finite.
    """

    name = "syntax"

    def __init__(
        self,
        languages: Sequence[str],
        targets: Sequence[str],
        pieces: PieceTable,
        known: Mask,
        shape: SyntaxShape,
        arrays: Mapping[str, FloatArray],
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.languages, self.targets, self.pieces, self.shape = tuple(languages), tuple(targets), pieces, shape
        if len(pieces) != shape.pieces or known.shape != (shape.pieces,) or len(self.targets) != shape.languages:
            actual = f"{len(pieces)} pieces and {len(self.targets)} target languages"
            raise ValueError(f"{actual}, expected {shape.pieces} and {shape.languages}")
        check_arrays(arrays, shape.array_shapes())
        self.arrays = {name: arrays[name] for name in shape.array_shapes()}
        self.known: Mask = known.astype(np.bool_)
        self.training = dict(training or {})

    @cached_property
    def vectors(self) -> SyntaxVectors:
        """The encoder, computed without torch."""
        return SyntaxVectors(self.arrays, self.shape)

    @cached_property
    def likelihood(self) -> TagLikelihood:
        """The decoder, computed without torch."""
        return TagLikelihood(self.arrays, self.shape, self.vectors)

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return self.shape.dimension

    def encode(self, sentences: Sequence[str | bytes]) -> FloatArray:
        """Return the vectors of N sentences or phrases of any languages, float32, shape (N, dimension).

        Args:
            sentences: words separated by spaces, tokenised as the training data; Moses' escapes are undone.

        Returns:
            Zeros for a sentence without a known piece or longer than the maximum input length.
        """
        return self.encode_texts(*read_words(sentences))

    def encode_texts(self, texts: Phrases, words: Sequence[bytes]) -> FloatArray:
        """Return the vectors of texts given as ids of their distinct words, unescaped; see `encode`."""
        pieces = self.in_pieces(texts, words)
        return self.vectors(_without(pieces, ~self.encodable(pieces)))

    def cosines(self, sources: Sequence[str | bytes], targets: Sequence[str | bytes]) -> FloatArray:
        """Return the cosine of the vectors of each of N pairs of texts, float32, shape (N,).

        Args:
            sources, targets: N texts each, see `encode`.

        Returns:
            NaN for a pair with a side that cannot be encoded.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources and {len(targets)} targets, expected as many")
        both = self.encode([*sources, *targets])
        norms = np.linalg.norm(both, axis=1)
        unit = both / np.where(norms, norms, np.nan)[:, None]
        cosines: FloatArray = np.einsum("ij,ij->i", unit[: len(sources)], unit[len(sources) :])
        return np.clip(cosines, np.float32(-1), np.float32(1))

    def in_pieces(self, texts: Phrases, words: Sequence[bytes]) -> Phrases:
        """Return texts as piece ids; pieces that were not seen in training become the unknown piece."""
        return known_pieces(self.pieces.of_texts(texts, words), self.known)

    def encodable(self, texts: Phrases) -> Mask:
        """Return which of N texts in pieces have a known piece and are not too long, bool, shape (N,)."""
        counts = prefix_sums(~self.pieces.silent[texts.words])
        encodable: Mask = (counts[texts.offsets[1:]] > counts[texts.offsets[:-1]]) & ~self.over_long(texts)
        return encodable

    def too_long(self, sentences: Sequence[str | bytes]) -> Mask:
        """Return which of N sentences, see `encode`, exceed the maximum input length, bool, shape (N,)."""
        return self.over_long(self.in_pieces(*read_words(sentences)))

    def over_long(self, texts: Phrases) -> Mask:
        """Return which of N texts in pieces exceed the maximum input length, bool, shape (N,)."""
        return np.asarray(texts.lengths > self.shape.longest)

    def description(self) -> dict[str, Any]:
        """Return the description of the model for `config.json`."""
        return {
            "languages": list(self.languages),
            "targets": list(self.targets),
            "shape": asdict(self.shape),
            "dimension": self.dimension,
        }

    @property
    def identity(self) -> str:
        """Eight hexadecimal digits that differ when a weight, a piece or a language differs."""
        head = repr((self.languages, self.targets, self.shape, self.pieces.pieces))
        return model_identity(head, {**self.arrays, _KNOWN: self.known}, ())

    @property
    def signature(self) -> str:
        """The model's part of a signature line."""
        return f"model:{self.name}-{self.identity}|languages:{','.join(self.languages)}|n:{self.dimension}"

    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """Return name -> array, as stored."""
        return {**self.arrays, _KNOWN: self.known.astype(np.uint8)}

    def save_files(self, folder: Path) -> None:
        """Write the pieces, a model of sentencepiece."""
        (folder / _PIECES).write_bytes(self.pieces.stored)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> SyntaxModel:
        """Return the model that a folder holds.

        Raises:
            ModelError: `config.json` does not describe a syntactic encoder, or its pieces cannot be read.
            KeyError, ValueError: weights are missing, or do not match `config.json`.
        """
        try:
            languages, targets = ([str(language) for language in config[name]] for name in ("languages", "targets"))
            shape = SyntaxShape(**config["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json does not describe a syntactic encoder ({error})") from error
        try:
            pieces = PieceTable((folder / _PIECES).read_bytes())
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder / _PIECES}: cannot read: {error}") from error
        known = weights[_KNOWN].astype(np.bool_)
        return cls(languages, targets, pieces, known, shape, weights, config.get("training", {}))


def _without(texts: Phrases, removed: Mask) -> Phrases:
    """Return the texts with the content of some removed."""
    lengths = np.where(removed, 0, texts.lengths)
    offsets = prefix_sums(lengths)
    return Phrases(offsets, texts.words[np.repeat(~removed, texts.lengths)])


def syntax_fit(model: SyntaxModel, sources: Sequence[bytes], targets: Sequence[bytes]) -> ModelCompatibility:
    """Measure how many words of N phrase pairs an encoder knows, see `measure_fit`.

    Its ability to rank true pairs above random ones is not measured: many pairs have the same syntax.

    Args:
        model: the encoder.
        sources, targets: N phrases each, words separated by spaces.
    """
    sides, vocabularies = [], []
    for lines in (sources, targets):
        phrases, words = read_words(lines)
        single_words = Phrases(np.arange(len(words) + 1), np.arange(len(words), dtype=np.int32))
        encodable = model.encodable(model.in_pieces(single_words, words))
        known = [word for word, good in zip(words, encodable.tolist(), strict=True) if good and word != UNKNOWN_WORD]
        numbers = {word: number for number, word in enumerate(known, 1)}
        ids = np.array([numbers.get(word, UNKNOWN) for word in words], np.int32)
        sides.append(Phrases(phrases.offsets, ids[phrases.words] if words else phrases.words))
        vocabularies.append(Vocabulary([UNKNOWN_WORD, *known]))
    return measure_fit(None, (sides[0], sides[1]), (vocabularies[0], vocabularies[1]), (sources, targets))


def nearest_by_syntax(
    model: SyntaxModel, text: bytes, texts: Phrases, words: Sequence[bytes], count: int
) -> tuple[list[tuple[bytes, float]], int]:
    """Find the texts whose syntax is nearest to that of a text, by the cosine of their vectors.

    Args:
        model: the encoder.
        text: words separated by spaces, with or without Moses' escapes; the text itself is left out of the result.
        texts: texts to search, in ids of `words`.
        words: distinct words, unescaped.
        count: maximum number of texts to return; equally near ones keep their order.

    Returns:
        The nearest texts with their cosines, and the number of distinct texts that were searched.

    Raises:
        PhraseToolError: no piece of the text is known, or the text is too long.
    """
    query = split_words(unescape(text))
    vector = unit_vectors(model.encode_texts(Phrases.from_lists([range(len(query))]), query))[0]
    if not vector.any():
        raise PhraseToolError("the sentence has no known subword unit, or exceeds the maximum input length")
    distinct = distinct_phrases(texts)[1]
    cosines = np.clip(unit_vectors(model.encode_texts(distinct, words)) @ vector, -1, 1)
    nearest: list[tuple[bytes, float]] = []
    for number in np.argsort(-cosines, kind="stable")[: count + 1].tolist():
        line = [words[word] for word in distinct[number].tolist()]
        if line != query and len(nearest) < count:
            nearest.append((b" ".join(line), float(cosines[number])))
    return nearest, len(distinct)


def check_languages(model: SyntaxModel, tagger: TaggerModel, language: str) -> None:
    """Raise an error for a language that the encoder does not predict or the tagger was not trained on.

    Raises:
        ValueError: the language is unknown; the message lists the known ones.
    """
    if language not in model.targets:
        known = ", ".join(model.targets)
        raise ValueError(f"unknown language {language!r}; the encoder predicts the parts of speech of {known}")
    tagger.check_language(language)


def tag_log_probabilities(
    model: SyntaxModel, tagger: TaggerModel, texts: Sequence[bytes], translations: Sequence[bytes], language: str
) -> FloatArray:
    """Return the mean log-probability of the parts of speech of each of N translations, including the end.

    Args:
        model: encoder and decoder, which predict parts of speech from the texts.
        tagger: tagger of the translations.
        texts: N texts, words separated by spaces.
        translations: translation of each text.
        language: language of the translations.

    Returns:
        float32, shape (N,); NaN where no piece of a text is known, or a translation has no word.

    Raises:
        ValueError: the language is unknown.
    """
    check_languages(model, tagger, language)
    pieces = model.in_pieces(*read_words(texts))
    phrases, words = read_words(translations)
    numbers, firsts = number_distinct(phrases)
    decoded = [word.decode("utf-8", "surrogateescape") for word in words]
    lines = [[decoded[word] for word in text.tolist()] for text in phrases.select(firsts)]
    tags = Phrases.from_lists(tagger.universal_tags(lines, language))
    rows = np.flatnonzero(model.encodable(pieces) & (tags.lengths[numbers] > 0))
    scores = np.full(len(texts), np.nan, np.float32)
    likelihoods = model.likelihood(pieces.select(rows), tags.select(numbers[rows]), model.targets.index(language))
    # Rounding must not make a probability exceed 1.
    scores[rows] = np.minimum(likelihoods, 0)
    return scores
