"""Public classes of sentence models; sentences are strings whose words are separated by spaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from phrasetool.library.models import LibraryModel
from phrasetool.phrases import FloatArray
from phrasetool.text_splitting import split_words

if TYPE_CHECKING:
    from phrasetool.autoencoder.model import AutoencoderModel
    from phrasetool.pair_classifier.model import PairClassifierModel
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.text_encoders.text_encoder import Side
    from phrasetool.translator.model import TranslatorModel


def _lines(sentences: Iterable[str]) -> list[bytes]:
    if isinstance(sentences, str):
        raise TypeError("expected several sentences, found one string")
    return [sentence.encode("utf-8", "surrogateescape") for sentence in sentences]


class Tagger(LibraryModel["TaggerModel"]):
    """Part-of-speech tagger; see `phrasetool train tagger`.

    Examples:
        >>> tags = Tagger.load(demo_tagger).tag(["the market grows"], "en")
        >>> [len(sentence_tags) for sentence_tags in tags]
        [3]
    """

    @classmethod
    def _family(cls) -> type[TaggerModel]:
        from phrasetool.tagger.model import TaggerModel

        return TaggerModel

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that the tagger was trained on."""
        return self.model.languages

    def tag(self, sentences: Iterable[str], language: str, *, joined: bool = True) -> list[list[str]]:
        """Return the universal part of speech of each word.

        Args:
            sentences: N sentences, tokenised as by Moses; Moses escapes are decoded.
            language: language of the sentences, one of `languages`.
            joined: whether a contraction of two words may get a joined tag, such as `ADP+DET` for German `im`.

        Raises:
            ValueError: the language is unknown.
        """
        from phrasetool.vocabulary import unescape

        words = [
            [unescape(word).decode("utf-8", "surrogateescape") for word in split_words(line)]
            for line in _lines(sentences)
        ]
        return self.model.tag(words, language, joined)


class SyntaxEncoder(LibraryModel["SyntaxModel"]):
    """Encoder for the syntax of sentences; see `phrasetool train syntax`.

    Examples:
        >>> encoder = SyntaxEncoder.load(demo_syntax)
        >>> encoder.encode(["the market grows", "a bank lends"]).shape == (2, encoder.dimension)
        True
    """

    @classmethod
    def _family(cls) -> type[SyntaxModel]:
        from phrasetool.syntax.model import SyntaxModel

        return SyntaxModel

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return self.model.dimension

    def encode(self, sentences: Iterable[str]) -> FloatArray:
        """Return sentence vectors; sentences of similar syntax have similar vectors, whatever their language.

        Args:
            sentences: N sentences, tokenised like the training data; Moses escapes are decoded.

        Returns:
            float32, shape (N, dimension); zeros for a sentence that is too long or has no known subword.
        """
        return self.model.encode(_lines(sentences))

    def similarity(self, sources: Iterable[str], targets: Iterable[str]) -> FloatArray:
        """Return the cosine similarity of each of N pairs: float32, shape (N,), NaN if a side has no vector.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        return self.model.cosines(_lines(sources), _lines(targets))


class PairClassifier(LibraryModel["PairClassifierModel"]):
    """Classifier of parallel sentences (translations of each other); see `phrasetool train classifier`.

    Examples:
        >>> classifier = PairClassifier.load(demo_classifier)
        >>> classifier.probability(["经济 发展", "天气"], ["economic development", "the weather"]).shape
        (2,)
    """

    @classmethod
    def _family(cls) -> type[PairClassifierModel]:
        from phrasetool.pair_classifier.model import PairClassifierModel

        return PairClassifierModel

    @property
    def dimension(self) -> int:
        """Size of a sentence vector."""
        return self.model.dimension

    @property
    def threshold(self) -> float:
        """Probability threshold that classified the pairs of the development set best."""
        return self.model.thresholds["best"]

    def encode(self, sentences: Iterable[str], side: Side) -> FloatArray:
        """Return sentence vectors, before sentence length is taken into account.

        Args:
            sentences: N sentences, tokenised like the training data; Moses escapes are decoded.
            side: side of the sentences, `source` or `target`.

        Returns:
            float32, shape (N, dimension); zeros for a sentence without known words.

        Raises:
            ValueError: `side` is invalid.
        """
        if side not in ("source", "target"):
            raise ValueError(f"unknown side {side!r}; expected source or target")
        return self.model.encode(_lines(sentences), side)

    def probability(self, sources: Iterable[str], targets: Iterable[str]) -> FloatArray:
        """Return the probability that each of N pairs is parallel.

        Args:
            sources, targets: N sentences each, see `encode`.

        Returns:
            float32, shape (N,); NaN if a side has no known words.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        from phrasetool.pair_classifier.bitext_scores import ClassifierScorer

        first, second = _lines(sources), _lines(targets)
        if len(first) != len(second):
            raise ValueError(f"{len(first)} sources and {len(second)} targets, expected as many")
        return ClassifierScorer(self.model)(first, second).scores


class Autoencoder(LibraryModel["AutoencoderModel"]):
    """Autoencoder for sentences of one language; see `phrasetool train autoencoder`.

    Examples:
        >>> autoencoder = Autoencoder.load(demo_autoencoder)
        >>> autoencoder.encode(["the market"]).shape == (1, autoencoder.dimension)
        True
    """

    @classmethod
    def _family(cls) -> type[AutoencoderModel]:
        from phrasetool.autoencoder.model import AutoencoderModel

        return AutoencoderModel

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return self.model.dimension

    def encode(self, sentences: Iterable[str]) -> FloatArray:
        """Return the vectors of N sentences: float32, shape (N, dimension).

        Args:
            sentences: N sentences, tokenised like the training data; Moses escapes are decoded.

        Raises:
            LengthError: a sentence is too long.
        """
        from phrasetool.autoencoder.inference import encode_texts
        from phrasetool.smt.corpus.symbols import read_words
        from phrasetool.training.data import in_vocabulary

        return encode_texts(self.model, in_vocabulary(*read_words(_lines(sentences)), self.model.vocabulary))

    def reconstruct(self, sentences: Iterable[str]) -> list[str]:
        """Return each sentence as the decoder reconstructs it from its vector.

        Args:
            sentences: see `encode`.

        Raises:
            LengthError: a sentence is too long.
        """
        from phrasetool.autoencoder.inference import reconstruct_lines
        from phrasetool.smt.corpus.symbols import read_words

        reconstruction = reconstruct_lines(self.model, *read_words(_lines(sentences)))
        return [line.decode("utf-8", "surrogateescape") for line in reconstruction.lines]


class Translator(LibraryModel["TranslatorModel"]):
    """Neural machine translator for sentences; see `phrasetool train translator`.

    Examples:
        >>> translator = Translator.load(demo_translator)
        >>> len(translator.translate(["经济 发展", ""]))
        2
    """

    @classmethod
    def _family(cls) -> type[TranslatorModel]:
        from phrasetool.translator.model import TranslatorModel

        return TranslatorModel

    def translate(self, sentences: Iterable[str], *, beam: int = 1, threads: int = 1) -> list[str]:
        """Return the best translation of each of N sentences.

        An unknown word in the output is replaced by the source word with the most attention.

        Args:
            sentences: N sentences, tokenised like the training data; Moses escapes are decoded.  The translation of an
                empty sentence is empty.
            beam: beam size; 1 is greedy search.
            threads: number of batches processed in parallel; it does not change the translations.

        Raises:
            LengthError: a sentence is too long.
            ValueError: `beam` is not positive.
        """
        from phrasetool.smt.corpus.symbols import read_words
        from phrasetool.training.data import in_vocabulary
        from phrasetool.translator.decoding import replace_unknown_words, translate

        if beam < 1:
            raise ValueError(f"the beam is {beam}, expected at least 1")
        texts, words = read_words(_lines(sentences))
        rows = texts.lengths.nonzero()[0]
        sources = in_vocabulary(texts, words, self.model.source_vocabulary).select(rows)
        translations = [""] * len(texts)
        outputs = translate(self.model.network, sources, self.model.temperature, beam, threads=threads)
        for row, translation in zip(rows.tolist(), outputs, strict=True):
            source = [words[number] for number in texts[row].tolist()]
            line = b" ".join(replace_unknown_words(translation, self.model.target_vocabulary.words, source, {}))
            translations[row] = line.decode("utf-8", "surrogateescape")
        return translations
