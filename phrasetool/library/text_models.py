"""Models of sentences as people use them: sentences are strings with spaces between their words."""

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
    """Tags words with parts of speech; see `phrasetool train tagger`.

    Examples:
        >>> tags = Tagger.load(demo_tagger).tag(["the market grows"], "en")
        >>> [len(of_sentence) for of_sentence in tags]
        [3]
    """

    @classmethod
    def _family(cls) -> type[TaggerModel]:
        from phrasetool.tagger.model import TaggerModel

        return TaggerModel

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that it was trained on."""
        return self.model.languages

    def tag(self, sentences: Iterable[str], language: str, *, joined: bool = True) -> list[list[str]]:
        """Return the universal part of speech of each word.

        Args:
            sentences: N sentences, tokenised as by Moses; its escapes are undone.
            language: their language, one of `languages`.
            joined: whether a word that stands for two may get a joined tag, such as `ADP+DET` for German `im`.

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
    """Encodes the syntax of sentences; see `phrasetool train syntax`.

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
        """Return vectors in which sentences of similar syntax are near each other, whatever their language.

        Args:
            sentences: N sentences, tokenised as the training data; Moses' escapes are undone.

        Returns:
            float32, shape (N, dimension); zeros for a sentence of which no piece is known, or that is too long.
        """
        return self.model.encode(_lines(sentences))

    def similarity(self, sources: Iterable[str], targets: Iterable[str]) -> FloatArray:
        """Return the cosine of the vectors of each of N pairs, float32, shape (N,); NaN where a side has no vector.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        return self.model.cosines(_lines(sources), _lines(targets))


class PairClassifier(LibraryModel["PairClassifierModel"]):
    """Tells whether two sentences are translations of each other; see `phrasetool train classifier`.

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
        """The probability above which pairs of the development set were classified best."""
        return self.model.thresholds["best"]

    def encode(self, sentences: Iterable[str], side: Side) -> FloatArray:
        """Return sentence vectors, before their length is taken into account.

        Args:
            sentences: N sentences, tokenised as the training data; Moses' escapes are undone.
            side: their language, `source` or `target`.

        Returns:
            float32, shape (N, dimension); zeros for a sentence of which nothing is known.
        """
        return self.model.encode(_lines(sentences), side)

    def probability(self, sources: Iterable[str], targets: Iterable[str]) -> FloatArray:
        """Return the probability that each of N pairs is parallel.

        Args:
            sources, targets: N sentences each, see `encode`.

        Returns:
            float32, shape (N,); NaN where a side has no word, or none that is known.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        from phrasetool.pair_classifier.bitext_scores import ClassifierScorer

        first, second = _lines(sources), _lines(targets)
        if len(first) != len(second):
            raise ValueError(f"{len(first)} sources and {len(second)} targets, expected as many")
        return ClassifierScorer(self.model)(first, second).scores


class Autoencoder(LibraryModel["AutoencoderModel"]):
    """Encodes sentences of one language, and writes them again from their vectors; see `phrasetool train autoencoder`.

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
        """Return the vectors of N sentences, float32, shape (N, dimension).

        Args:
            sentences: tokenised as the training data; Moses' escapes are undone.

        Raises:
            LengthError: a sentence is too long.
        """
        from phrasetool.autoencoder.inference import encode_texts
        from phrasetool.smt.corpus.symbols import read_words
        from phrasetool.training.data import in_vocabulary

        return encode_texts(self.model, in_vocabulary(*read_words(_lines(sentences)), self.model.vocabulary))

    def reconstruct(self, sentences: Iterable[str]) -> list[str]:
        """Return each sentence as it is written again from its vector alone.

        Args:
            sentences: see `encode`.

        Raises:
            LengthError: a sentence is too long.
        """
        from phrasetool.autoencoder.inference import reconstruct_lines
        from phrasetool.smt.corpus.symbols import read_words

        written = reconstruct_lines(self.model, *read_words(_lines(sentences)))
        return [line.decode("utf-8", "surrogateescape") for line in written.lines]


class Translator(LibraryModel["TranslatorModel"]):
    """Translates sentences with a neural network; see `phrasetool train translator`.

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

        A word that the model cannot write is replaced by the source word with most attention.

        Args:
            sentences: tokenised as the training data; Moses' escapes are undone.  The translation of an empty sentence
                is empty.
            beam: number of hypotheses that are kept at a time; 1 is greedy search.
            threads: number of batches at a time; they change no translation.

        Raises:
            LengthError: a sentence is too long.
            ValueError: the beam is not positive.
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
