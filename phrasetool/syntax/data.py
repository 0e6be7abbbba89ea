"""What a syntactic encoder learns from: sentences in pieces, and the parts of speech of their translations."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phrasetool.phrases import Int64Array, Mask, Phrases
from phrasetool.syntax.pieces import PieceTable
from phrasetool.tagger.data import JOINT, UPOS
from phrasetool.tagger.model import TaggerModel
from phrasetool.train.data import held_out_groups
from phrasetool.train.text_pairs import TextPairs

# Pairs of each bitext to hold out at most.
_MOST_HELD_OUT = 500
# Sentences that are tagged together.
_TOGETHER = 512


@dataclass(frozen=True)
class NamedBitext:
    """Sentences and their translations; or, if both sides are one language, sentences with themselves.

    Attributes:
        languages: of both sides.
        pairs: the sentences.
    """

    languages: tuple[str, str]
    pairs: TextPairs


@dataclass
class Sentences:
    """The distinct sentences of several languages, numbered by language and in the order in which they are met.

    Attributes:
        numbers: language -> words between spaces -> number.
    """

    numbers: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def add(self, language: str, texts: Phrases, words: Sequence[bytes]) -> Int64Array:
        """The numbers of texts, int64, shape (N,)."""
        known = self.numbers.setdefault(language, {})
        lines = (b" ".join([words[word] for word in text]) for text in _lists(texts))
        return np.array([known.setdefault(line, len(known)) for line in lines], np.int64)

    def firsts(self) -> dict[str, int]:
        """Language -> where its sentences begin when all are numbered together."""
        found, first = {}, 0
        for language, known in self.numbers.items():
            found[language] = first
            first += len(known)
        return found

    def words(self, language: str) -> list[list[bytes]]:
        """The sentences of a language as words."""
        return [line.split(b" ") for line in self.numbers[language]]

    def word_counts(self) -> Counter[bytes]:
        """How often each word is seen."""
        return Counter(word for known in self.numbers.values() for line in known for word in line.split(b" "))


@dataclass(frozen=True)
class SyntaxExamples:
    """E examples over N sentences.

    Attributes:
        texts: sentences in pieces.
        tags: of each sentence, in numbers of tags; none where they are not known.
        sources: which sentence is read, int64, shape (E,).
        targets: the parts of speech of which sentence are written, int64, shape (E,).
        languages: number of that sentence's language, int64, shape (E,).
    """

    texts: Phrases
    tags: Phrases
    sources: Int64Array
    targets: Int64Array
    languages: Int64Array

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, index: Int64Array | Mask) -> SyntaxExamples:
        """Some of the examples."""
        return SyntaxExamples(self.texts, self.tags, self.sources[index], self.targets[index], self.languages[index])


def short_pairs(bitext: NamedBitext, least: int, most: int) -> NamedBitext:
    """The pairs that have so many words on either side.

    Args:
        bitext: any.
        least, most: words.
    """
    sides = bitext.pairs.sources.lengths, bitext.pairs.targets.lengths
    good = (np.minimum(*sides) >= least) & (np.maximum(*sides) <= most)
    return NamedBitext(bitext.languages, bitext.pairs.select(np.flatnonzero(good)))


def numbered(bitexts: Sequence[NamedBitext]) -> tuple[Sentences, list[Int64Array]]:
    """All sentences, and of each bitext its distinct pairs, int64, shape (N, 2), in numbers of all sentences."""
    sentences = Sentences()
    found = [
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
        for sides, bitext in zip(found, bitexts, strict=True)
    ]
    return sentences, pairs


def held_out_pairs(pairs: Sequence[Int64Array], seed: int) -> tuple[list[Int64Array], list[Int64Array]]:
    """Pairs to learn from, and some of each bitext as a development set, with no sentence in both.

    Args:
        pairs: of each bitext, shape (N, 2).
        seed: of the draw.

    Raises:
        ValueError: nothing remains to learn from.
    """
    rng = np.random.default_rng([seed, 0])
    held = [rows[held_out_groups(np.arange(len(rows)), rng, _MOST_HELD_OUT)] for rows in pairs]
    drawn = np.unique(np.concatenate([rows.ravel() for rows in held]))
    kept = [rows[~np.isin(rows, drawn).any(1)] for rows in pairs]
    if not sum(map(len, kept)):
        raise ValueError("too few pairs of different sentences, to hold some out as a development set")
    return kept, held


def tag_numbers(sentences: Sentences, tagger: TaggerModel) -> Phrases:
    """The parts of speech of all sentences in numbers of tags; both of a word that stands for two.

    Args:
        sentences: of any languages; those of a language that the tagger does not know have none.
        tagger: any.
    """
    numbers = {tag: [UPOS.index(part) for part in tag.split(JOINT)] for tag in tagger.tags}
    found: list[list[int]] = []
    for language in sentences.numbers:
        lines = sentences.words(language)
        if language not in tagger.languages:
            found.extend([] for _ in lines)
            continue
        for first in range(0, len(lines), _TOGETHER):
            part = [
                [word.decode("utf-8", "surrogateescape") for word in line] for line in lines[first : first + _TOGETHER]
            ]
            found.extend([number for tag in tags for number in numbers[tag]] for tags in tagger.tag(part, language))
    return Phrases.from_lists(found)


def piece_numbers(sentences: Sentences, pieces: PieceTable) -> Phrases:
    """All sentences in pieces."""
    return Phrases.from_lists(
        [
            [piece for word in line for piece in pieces.of_word(word)]
            for language in sentences.numbers
            for line in sentences.words(language)
        ]
    )


def directed_examples(
    texts: Phrases, tags: Phrases, pairs: Sequence[Int64Array], languages: Mapping[str, int],
    of: Sequence[tuple[str, str]], longest: int, own: bool = False,
) -> SyntaxExamples:  # fmt: skip
    """Each pair in both directions, where the parts of speech of what is written are known.

    Args:
        texts, tags: of all sentences.
        pairs: of each bitext, shape (N, 2).
        languages: whose parts of speech are predicted, with their numbers.
        of: of each bitext, the languages of both sides.
        longest: pieces of a sentence that is read.
        own: also each sentence with its own parts of speech.
    """
    parts = [np.zeros((0, 3), np.int64)]
    for rows, sides in zip(pairs, of, strict=True):
        for source, target in ((0, 1), (1, 0)):
            if (number := languages.get(sides[target])) is not None:
                parts.append(np.column_stack([rows[:, source], rows[:, target], np.full(len(rows), number)]))
                if own:
                    same = np.unique(rows[:, target])
                    parts.append(np.column_stack([same, same, np.full(len(same), number)]))
    # A pair that several bitexts have is one example.
    rows = np.unique(np.concatenate(parts), axis=0)
    good = (tags.lengths[rows[:, 1]] > 0) & (texts.lengths[rows[:, 0]] <= longest)
    return SyntaxExamples(texts, tags, *np.ascontiguousarray(rows[good].T))


def _lists(texts: Phrases) -> list[list[int]]:
    words = texts.words.tolist()
    return [words[first:last] for first, last in itertools.pairwise(texts.offsets.tolist())]
