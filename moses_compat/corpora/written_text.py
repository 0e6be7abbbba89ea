"""Text as it is written, with Moses' escapes or without, and the words it has for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moses_compat.corpora.parallel_texts import unescaped_words
from moses_compat.corpora.texts import read_sentences
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.train.data import in_vocabulary
from phrasetool.vocabulary import Vocabulary, escape, has_escapes, lacks_escapes, unescape


@dataclass(frozen=True)
class WrittenText:
    """N sentences; they may be empty.

    Attributes:
        sentences: in ids of the symbols.
        symbols: words as they are written.
        escaped: whether they are written with Moses' escapes; None if no word tells.
    """

    sentences: Phrases
    symbols: Symbols
    escaped: bool | None

    @classmethod
    def read(cls, path: str) -> WrittenText:
        """Read a text, a sentence a line.

        Args:
            path: the file, compressed or not; `-` for standard input.

        Raises:
            DataError: the file cannot be read, or there is a carriage return in it.
        """
        symbols = Symbols()
        sentences = symbols.read_lines(read_sentences(path))
        escaped = None
        if any(has_escapes(word) for word in symbols.words):
            escaped = True
        elif any(lacks_escapes(word) for word in symbols.words):
            escaped = False
        return cls(sentences, symbols, escaped)

    def ids(self, vocabulary: Vocabulary) -> Phrases:
        """The sentences in ids of a vocabulary; words that it lacks are unknown."""
        return in_vocabulary(*unescaped_words(self.sentences, self.symbols.words), vocabulary)

    def words(self, sentence: int) -> list[bytes]:
        """The words of a sentence, as they are written."""
        known = self.symbols.words
        return [known[i] for i in self.sentences[sentence].tolist()]

    def copies(self, dictionary: Mapping[bytes, bytes], escaped: bool) -> dict[bytes, bytes]:
        """What a dictionary has for the words as they are written, to be written.

        Args:
            dictionary: source word -> target word, without escapes.
            escaped: write escapes.
        """
        found = {word: dictionary.get(unescape(word)) for word in self.symbols.words}
        return {word: escape(target) if escaped else target for word, target in found.items() if target is not None}


def written_words(words: Sequence[bytes], escaped: bool) -> list[bytes]:
    """Words without escapes as they are to be written."""
    return [escape(word) for word in words] if escaped else list(words)
