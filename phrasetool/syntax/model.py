"""A trained syntactic encoder: it is saved and loaded, encodes texts, finds texts of similar syntax, and scores tags.

`config.json` calls it `syntax`.
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
from phrasetool.models.fit import ModelFit, measure_fit
from phrasetool.models.saved_model import SavedModel, check_arrays, model_identity
from phrasetool.phrases import FloatArray, Mask, Phrases, prefix_sums
from phrasetool.sentences import read_words
from phrasetool.syntax.inference import SyntaxVectors, TagLikelihood, unit_vectors
from phrasetool.syntax.pieces import PieceTable, known_pieces
from phrasetool.syntax.settings import SyntaxShape
from phrasetool.tagger.model import TaggerModel
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import distinct_phrases, number_distinct
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary, unescape

_PIECES = "pieces.model"
# Of the stored arrays: which pieces were seen in training, one byte a piece.
_KNOWN = "pieces.known"


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
        """Name -> array, as stored."""
        return {**self.arrays, _KNOWN: self.known.astype(np.uint8)}

    def save_files(self, folder: Path) -> None:
        """Write the pieces, a model of sentencepiece."""
        (folder / _PIECES).write_bytes(self.pieces.stored)

    @classmethod
    def from_files(
        cls, folder: Path, config: Mapping[str, Any], weights: Mapping[str, npt.NDArray[Any]]
    ) -> SyntaxModel:
        """Build the model from the content of its folder.

        Raises:
            ModelError: `config.json` does not describe a syntactic encoder, or its pieces cannot be read.
            KeyError, ValueError: weights are missing, or do not agree with `config.json`.
        """
        try:
            languages, targets = ([str(one) for one in config[name]] for name in ("languages", "targets"))
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


def syntax_fit(model: SyntaxModel, sources: Sequence[bytes], targets: Sequence[bytes]) -> ModelFit:
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
        raise PhraseToolError("the encoder knows nothing of the sentence, or it is longer than what it reads")
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
