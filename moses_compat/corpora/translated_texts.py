"""Inputs of neural translation: texts, dictionaries for unknown words, and the target words of a phrase table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from moses_compat.corpora.texts import read_sentences, unescaped_words
from moses_compat.corpora.training_pairs import pair_places
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import blocks
from moses_compat.tables.parser import tokenise
from phrasetool.errors import DataError
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import find_phrases, index_phrases, spans_of
from phrasetool.text_splitting import single_spaced, split_lines, split_words
from phrasetool.training.data import in_vocabulary
from phrasetool.vocabulary import UNKNOWN, Vocabulary, escape, has_escapes, lacks_escapes, unescape


@dataclass(frozen=True)
class WrittenText:
    """A text of N sentences, which may be empty.

    Attributes:
        sentences: the sentences in ids of the symbols.
        symbols: the words as they are written.
        escaped: whether the words are written with Moses' escapes; None if no word needs an escape.
    """

    sentences: Phrases
    symbols: Symbols
    escaped: bool | None

    @classmethod
    def read(cls, path: str) -> WrittenText:
        """Read a text, one sentence per line.

        Args:
            path: the file, compressed or not; `-` for standard input.

        Raises:
            DataError: the file cannot be read, or contains a carriage return.
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
        """Return the sentences in ids of a vocabulary; words that it lacks become unknown."""
        return in_vocabulary(*unescaped_words(self.sentences, self.symbols.words), vocabulary)

    def words(self, sentence: int) -> list[bytes]:
        """Return the words of a sentence, without escapes."""
        known = self.symbols.words
        return [unescape(known[i]) for i in self.sentences[sentence].tolist()]


def written_words(words: Sequence[bytes], escaped: bool) -> list[bytes]:
    """Return unescaped words as they are written to an output, with escapes if `escaped`."""
    return [escape(word) for word in words] if escaped else list(words)


_NONE = b"NULL"


def read_dictionary(path: str) -> dict[bytes, bytes]:
    """Read the target word of each source word, without Moses' escapes.

    A line is `source target`, `source ||| target`, `source ||| target ||| number`, or `target source number` without
    bars, as in Moses' lexical tables: the number in lex.f2e is the probability of the target word given the source word
    (in lex.e2f, of a source word given a target word).  Of several targets of a word, the one with the highest number
    is used, or the first if no number is given.

    Args:
        path: the file, compressed or not.

    Raises:
        DataError: the file cannot be read, is empty, or has a line in another format.
    """
    best: dict[bytes, tuple[float, bytes]] = {}
    with Input(path) as file:
        text = file.read_all()
        name = file.name
    for number, line in enumerate(split_lines(text), 1):
        has_bars = b"|||" in line
        fields = [single_spaced(field) for field in line.split(b"|||")] if has_bars else split_words(line)
        if not fields:
            continue
        if not has_bars and len(fields) > 2:
            fields[:2] = fields[1::-1]
        try:
            source, target, weight = fields[0], fields[1], float(fields[2]) if len(fields) > 2 else 0.0
        except (IndexError, ValueError) as error:
            raise DataError(name, "expected `source target`, or `target source number`", number) from error
        if not source or not target or len(split_words(source)) > 1:
            raise DataError(name, "expected one source word and its translation", number)
        if _NONE in (source, target):
            continue
        word = unescape(source)
        if word not in best or weight > best[word][0]:
            best[word] = weight, unescape(target)
    if not best:
        raise DataError(name, "the dictionary has no words")
    return {word: target for word, (_, target) in best.items()}


_BLOCK_BYTES = 1 << 22
# Maximum length in words of source phrases that are looked up: Moses' default for extraction.
_LONGEST = 7


def span_words(
    path: str,
    sentences: Phrases,
    symbols: Symbols,
    vocabulary: Vocabulary,
    progress: Callable[[int, int], None] = lambda position, entries: None,
) -> list[Int64Array]:
    """Return the target words that a table has for the spans of each sentence, ascending, without unknown words.

    Args:
        path: the table, or pairs `source ||| target`, compressed or not.
        sentences: N sentences, in ids of the symbols.
        symbols: source words, written as in the table.
        vocabulary: the target vocabulary.
        progress: called with the numbers of bytes and lines read so far.

    Raises:
        DataError: the file cannot be read, a line has no `|||`, or no entry matches the text and the vocabulary.
    """
    index, _ = index_phrases(spans_of(sentences, _LONGEST))
    parts = [np.zeros(0, np.int64)]
    lines = 0
    with Input(path) as file:
        for text in blocks(file, _BLOCK_BYTES):
            fields = pair_places(text)
            if len(malformed := np.flatnonzero(fields[:, 1] < 0)):
                raise DataError(file.name, "expected `source ||| target`, found no |||", lines + int(malformed[0]) + 1)
            phrase_ids = find_phrases(index, symbols.read_fields(text, fields[:, 0], fields[:, 1], add=False))
            matches = np.flatnonzero(phrase_ids >= 0)
            starts, ends = np.ascontiguousarray(fields[matches].T)[2:]
            targets = tokenise(text, starts, ends, vocabulary)
            pairs = np.repeat(phrase_ids[matches], targets.lengths) * len(vocabulary) + targets.words
            parts.append(np.unique(pairs[targets.words != UNKNOWN]))
            lines += len(fields)
            progress(file.position(), lines)
        name = file.name
    known = np.unique(np.concatenate(parts))
    if len(sentences.words) and not len(known):
        raise DataError(
            name, f"none of its {lines:,} entries has a source of the text and a target that the model knows"
        )
    firsts = np.searchsorted(known // len(vocabulary), np.arange(len(index.offsets)))
    words = known % len(vocabulary)

    def allowed(sentence: int) -> Int64Array:
        spans = find_phrases(index, spans_of(sentences.part(sentence, sentence + 1), _LONGEST))
        return np.unique(np.concatenate([words[:0], *(words[firsts[i] : firsts[i + 1]] for i in np.unique(spans))]))

    return [allowed(sentence) for sentence in range(len(sentences))]
