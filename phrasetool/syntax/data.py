"""Training examples of a syntactic encoder: texts in subword units, and the parts of speech of their translations.

The units are shared by all languages: byte-pair encoding (Sennrich et al. 2016) by sentencepiece.  Pieces never cross a
space, so the pieces of a word do not depend on its sentence, and can be cached.
"""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array, Mask, Phrases
from phrasetool.tagger.model import TaggerModel
from phrasetool.training.data import TextPairs, held_out_groups

# Marks the beginning of a word; a piece of this mark alone carries no information.
_BLANK = "▁"
# A character that has no piece is represented by pieces of its bytes.
_OPTIONS: dict[str, Any] = {
    "model_type": "bpe", "input_format": "tsv", "character_coverage": 1.0, "byte_fallback": True, "num_threads": 1,
    "normalization_rule_name": "identity", "bos_id": -1, "eos_id": -1, "pad_id": -1, "minloglevel": 3,
    "shuffle_input_sentence": False,
}  # fmt: skip
# Longer tokens are not segmented, because they are hardly words.
_LONGEST_WORD = 400
UNKNOWN_PIECE = 0
# Maximum number of pairs of each bitext that are held out.
_MOST_HELD_OUT = 500
# Number of sentences that are tagged together.
_BATCH = 512


def learn_pieces(counts: Mapping[bytes, int], size: int) -> bytes:
    """Learn pieces from words.

    Args:
        counts: word -> number of its occurrences.
        size: number of pieces; fewer are learnt if the words do not yield as many.

    Returns:
        A serialised model of sentencepiece.

    Raises:
        ValueError: the size is too small for the characters, or `counts` has no word.
    """
    lines = sorted((_text(word), count) for word, count in counts.items() if len(word) <= _LONGEST_WORD and word)
    if not lines:
        raise ValueError("no words to learn subword units from")
    try:
        return _learnt(lines, size)
    except RuntimeError as error:
        maximum = re.search(r"too high .*<= (\d+)", str(error))
        if not maximum:
            too_small = "required_chars" in str(error)
            raise ValueError(f"{size} pieces are too few for the characters" if too_small else str(error)) from error
        return _learnt(lines, int(maximum[1]))


def _learnt(lines: list[tuple[str, int]], size: int) -> bytes:
    import sentencepiece

    def sentences() -> Iterator[str]:
        for text, count in lines:
            yield f"{text}\t{count}"

    stored = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences(), model_writer=stored, vocab_size=size, **_OPTIONS
    )
    return stored.getvalue()


class PieceTable:
    """Segmentation of words into pieces.

    Args:
        stored: serialised model, as returned by `learn_pieces`.

    Attributes:
        stored: the same.
        pieces: texts of the pieces; the first is the unknown piece.
        silent: pieces that carry no information (the unknown piece, and the bare mark of the beginning of a word),
            bool, shape (len(pieces),).

    Raises:
        ValueError: `stored` is not a model of sentencepiece.
    """

    def __init__(self, stored: bytes) -> None:
        import sentencepiece

        self.stored = stored
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=stored)
        except RuntimeError as error:
            raise ValueError(f"not a model of sentencepiece ({error})") from error
        self.pieces = [self._processor.id_to_piece(i) for i in range(self._processor.get_piece_size())]
        self.silent: Mask = np.array([piece in (self.pieces[UNKNOWN_PIECE], _BLANK) for piece in self.pieces])
        self._cache: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def of_word(self, word: bytes) -> list[int]:
        """Return the piece ids of a word without Moses' escapes."""
        ids = self._cache.get(word)
        if ids is None:
            ids = [UNKNOWN_PIECE] if len(word) > _LONGEST_WORD else self._processor.encode(_text(word))
            self._cache[word] = ids
        return ids

    def of_texts(self, texts: Phrases, words: Sequence[bytes]) -> Phrases:
        """Return texts as piece ids, given texts as ids of their distinct words."""
        return in_parts(texts, Phrases.from_lists([self.of_word(word) for word in words]))


def in_parts(texts: Phrases, parts: Phrases) -> Phrases:
    """Replace each word of texts with its parts.

    Args:
        texts: texts as word ids.
        parts: parts of each word.
    """
    chosen = parts.select(texts.words.astype(np.int64))
    return Phrases(chosen.offsets[texts.offsets], chosen.words)


def known_pieces(texts: Phrases, known: Mask) -> Phrases:
    """Replace pieces that are not known with the unknown piece; `known` is bool, of shape (pieces,)."""
    words: Int32Array = np.where(known[texts.words], texts.words, UNKNOWN_PIECE).astype(np.int32)
    return Phrases(texts.offsets, words)


def _text(word: bytes) -> str:
    # A tab would end the word in the input of sentencepiece's trainer.
    return word.decode("utf-8", "replace").replace("\t", " ")


@dataclass(frozen=True)
class NamedBitext:
    """Sentences and their translations; if both sides have the same language, sentences paired with themselves.

    Attributes:
        languages: languages of the two sides.
        pairs: sentence pairs.
    """

    languages: tuple[str, str]
    pairs: TextPairs


@dataclass
class Sentences:
    """The distinct sentences of several languages, numbered within each language in order of first occurrence.

    Attributes:
        numbers: language -> words separated by spaces -> number.
    """

    numbers: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def add(self, language: str, texts: Phrases, words: Sequence[bytes]) -> Int64Array:
        """Add N texts given as ids of words; return their numbers, int64, shape (N,)."""
        known = self.numbers.setdefault(language, {})
        lines = (b" ".join([words[word] for word in text]) for text in _lists(texts))
        return np.array([known.setdefault(line, len(known)) for line in lines], np.int64)

    def firsts(self) -> dict[str, int]:
        """Return language -> number of its first sentence when the languages are numbered consecutively."""
        firsts, first = {}, 0
        for language, known in self.numbers.items():
            firsts[language] = first
            first += len(known)
        return firsts

    def words(self, language: str) -> list[list[bytes]]:
        """Return the sentences of a language as lists of words."""
        return [line.split(b" ") for line in self.numbers[language]]

    def word_counts(self) -> Counter[bytes]:
        """Return word -> number of its occurrences."""
        return Counter(word for known in self.numbers.values() for line in known for word in line.split(b" "))


@dataclass(frozen=True)
class SyntaxExamples:
    """E examples over N sentences.

    Attributes:
        texts: sentences as piece ids.
        tags: tag numbers of each sentence; empty where the tagger does not know the language.
        sources: number of the sentence that is read, int64, shape (E,).
        targets: number of the sentence whose parts of speech are predicted, int64, shape (E,).
        languages: number of the target sentence's language, int64, shape (E,).
    """

    texts: Phrases
    tags: Phrases
    sources: Int64Array
    targets: Int64Array
    languages: Int64Array

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, index: Int64Array | Mask) -> SyntaxExamples:
        """Return some of the examples."""
        return SyntaxExamples(self.texts, self.tags, self.sources[index], self.targets[index], self.languages[index])


def short_pairs(bitext: NamedBitext, least: int, most: int) -> NamedBitext:
    """Return the pairs both of whose sides have from `least` to `most` words."""
    sides = bitext.pairs.sources.lengths, bitext.pairs.targets.lengths
    good = (np.minimum(*sides) >= least) & (np.maximum(*sides) <= most)
    return NamedBitext(bitext.languages, bitext.pairs.select(np.flatnonzero(good)))


def numbered(bitexts: Sequence[NamedBitext]) -> tuple[Sentences, list[Int64Array]]:
    """Number the sentences of all bitexts consecutively; return them, and the distinct pairs of each bitext.

    Returns:
        The sentences, and per bitext an array of sentence numbers, int64, shape (N, 2).
    """
    sentences = Sentences()
    numbers = [
        [
            sentences.add(language, texts, words)
            for language, texts, words in zip(
                bitext.languages, (bitext.pairs.sources, bitext.pairs.targets),
                (bitext.pairs.source_words, bitext.pairs.target_words), strict=True,
            )
        ]
        for bitext in bitexts
    ]  # fmt: skip
    firsts = sentences.firsts()
    pairs = [
        np.unique(
            np.column_stack([own + firsts[lang] for own, lang in zip(sides, bitext.languages, strict=True)]), axis=0
        )
        for sides, bitext in zip(numbers, bitexts, strict=True)
    ]
    return sentences, pairs


def held_out_pairs(pairs: Sequence[Int64Array], seed: int) -> tuple[list[Int64Array], list[Int64Array]]:
    """Split the pairs of each bitext into training pairs and a development set that have no sentence in common.

    Args:
        pairs: pairs of sentence numbers of each bitext, shape (N, 2).
        seed: seed of the random draw.

    Raises:
        ValueError: no training pair remains.
    """
    rng = np.random.default_rng([seed, 0])
    held = [rows[held_out_groups(np.arange(len(rows)), rng, _MOST_HELD_OUT)] for rows in pairs]
    drawn = np.unique(np.concatenate([rows.ravel() for rows in held]))
    kept = [rows[~np.isin(rows, drawn).any(1)] for rows in pairs]
    if not sum(map(len, kept)):
        raise ValueError("too few pairs of different sentences, to hold some out as a development set")
    return kept, held


def tag_numbers(sentences: Sentences, tagger: TaggerModel) -> Phrases:
    """Tag all sentences; return the numbers of their universal tags.

    Args:
        sentences: sentences of any languages; those of a language that the tagger does not know get no tags.
        tagger: the tagger.
    """
    numbers: list[list[int]] = []
    for language in sentences.numbers:
        lines = sentences.words(language)
        if language not in tagger.languages:
            numbers.extend([] for _ in lines)
            continue
        for first in range(0, len(lines), _BATCH):
            part = [
                [word.decode("utf-8", "surrogateescape") for word in line] for line in lines[first : first + _BATCH]
            ]
            numbers.extend(tagger.universal_tags(part, language))
    return Phrases.from_lists(numbers)


def piece_numbers(sentences: Sentences, pieces: PieceTable) -> Phrases:
    """Return all sentences as piece ids."""
    return Phrases.from_lists(
        [
            [piece for word in line for piece in pieces.of_word(word)]
            for language in sentences.numbers
            for line in sentences.words(language)
        ]
    )


def directed_examples(
    texts: Phrases, tags: Phrases, pairs: Sequence[Int64Array], languages: Mapping[str, int],
    sides: Sequence[tuple[str, str]], longest: int, own_language: bool = False,
) -> SyntaxExamples:  # fmt: skip
    """Make an example of each pair in each direction whose target language is predicted.

    Args:
        texts, tags: pieces and tags of all sentences.
        pairs: pairs of sentence numbers of each bitext, shape (N, 2).
        languages: languages whose parts of speech are predicted, with their numbers.
        sides: languages of the two sides of each bitext.
        longest: maximum number of pieces of a source sentence.
        own_language: also make examples of sentences with their own parts of speech.
    """
    parts = [np.zeros((0, 3), np.int64)]
    for rows, side_languages in zip(pairs, sides, strict=True):
        for source, target in ((0, 1), (1, 0)):
            if (number := languages.get(side_languages[target])) is not None:
                parts.append(np.column_stack([rows[:, source], rows[:, target], np.full(len(rows), number)]))
                if own_language:
                    same = np.unique(rows[:, target])
                    parts.append(np.column_stack([same, same, np.full(len(same), number)]))
    # A pair that occurs in several bitexts is one example.
    rows = np.unique(np.concatenate(parts), axis=0)
    good = (tags.lengths[rows[:, 1]] > 0) & (texts.lengths[rows[:, 0]] <= longest)
    return SyntaxExamples(texts, tags, *np.ascontiguousarray(rows[good].T))


def _lists(texts: Phrases) -> list[list[int]]:
    words = texts.words.tolist()
    return [words[first:last] for first, last in itertools.pairwise(texts.offsets.tolist())]
