"""Treebank sentences with their parts of speech, hashed features of words, and training examples."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array, prefix_sums

# The universal parts of speech.
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
    "SYM", "VERB", "X",
)  # fmt: skip
# Separator of the tags of the words that one token stands for, as German `im` stands for `in dem`.
JOINT = "+"
_LETTER = r"[^\W\d_]"
# Languages in which Moses' tokeniser attaches an apostrophe to the preceding word.
_ELIDING = {"fr", "it", "ga", "ca"}


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence of W words, written as T tokens.

    Attributes:
        words: W words.
        tags: W universal parts of speech.
        tokens: T pairs of a token's form and the number of words that it stands for; the numbers add up to W.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tokens: tuple[tuple[str, int], ...]

    def as_words(self) -> tuple[list[str], list[str]]:
        """Return the words and their tags, the units in which accuracy on a treebank is measured."""
        return list(self.words), list(self.tags)

    def as_moses(self, language: str) -> tuple[list[str], list[str]] | None:
        """Return the tokens as split by Moses' tokeniser, and their tags; the tags of several words are joined.

        Args:
            language: determines the splitting at apostrophes: `isn 't` in English, `l' homme` in French, `geht ' s`
                elsewhere.

        Returns:
            None if a token is split into several pieces that do not correspond to its words.
        """
        tokens: list[str] = []
        tags: list[str] = []
        first = 0
        for form, count in self.tokens:
            pieces, own = moses_pieces(form, language), self.tags[first : first + count]
            first += count
            if len(pieces) == 1:
                tags.append(JOINT.join(own))
            elif len(own) == 1:
                tags.extend(own * len(pieces))
            elif len(own) == len(pieces):
                tags.extend(own)
            else:
                return None
            tokens.extend(pieces)
        return tokens, tags

    def as_examples(self, language: str) -> list[tuple[list[str], list[str]]]:
        """Return the sentence in words and, where Moses tokenises it differently, in Moses' tokens, with their tags.

        Args:
            language: see `as_moses`.
        """
        plain, moses = self.as_words(), self.as_moses(language)
        return [plain] if moses is None or moses == plain else [plain, moses]


def moses_pieces(form: str, language: str) -> list[str]:
    """Split a token at apostrophes between letters, as Moses' tokeniser does.

    Args:
        form: a token without spaces.
        language: two-letter code.
    """
    if language == "en":
        replacement = r"\1 '"
    elif language in _ELIDING:
        replacement = r"\1' "
    else:
        replacement = r"\1 ' "
    return re.sub(rf"({_LETTER})'(?={_LETTER})", replacement, form).split(" ")


def lower_cased(words: Sequence[str]) -> list[str]:
    """Return the words in lower case."""
    return [word.lower() for word in words]


_PREFIXES, _SUFFIXES = 4, 5
# Features of a word: the word itself, its prefixes, its suffixes, its shape, the language.
FEATURES = 1 + _PREFIXES + _SUFFIXES + 2
# Maximum length of a shape.
_SHAPE = 8


def shape(word: str) -> str:
    """Return the classes of the characters of a word, runs collapsed: `Xx` for `Haus`, `0.0` for `10.25`."""
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else "c" if c.isalpha() else c for c in word
    )
    return re.sub(r"(.)\1+", r"\1", kinds)[:_SHAPE]


def feature_texts(word: str, language: str) -> list[str]:
    """Return the `FEATURES` features of a word as text; an empty text stands for no feature.

    Args:
        word: a word without Moses' escapes.
        language: language of the sentence.
    """
    low = word.lower()
    starts = [f"<{low[:size]}" if size < len(low) else "" for size in range(1, _PREFIXES + 1)]
    ends = [f"{low[-size:]}>" if size < len(low) else "" for size in range(1, _SUFFIXES + 1)]
    return [f"={low}", *starts, *ends, f"#{shape(word)}", f"@{language}"]


def feature_rows(words: Sequence[str], language: str, buckets: int) -> Int32Array:
    """Hash the features of words to rows of a table, int32, shape (N, `FEATURES`); row 0 stands for no feature.

    Args:
        words: N words; surrogate escapes of bytes that are not valid UTF-8 are hashed as these bytes.
        language: language of their sentences.
        buckets: rows of the table.
    """
    rows = np.zeros((len(words), FEATURES), np.int32)
    for row, word in enumerate(words):
        for column, text in enumerate(feature_texts(word, language)):
            if text:
                rows[row, column] = zlib.crc32(text.encode("utf-8", "surrogateescape")) % (buckets - 1) + 1
    return rows


# Language -> its sentences.
Treebanks = Mapping[str, Sequence[TaggedSentence]]
# Tag of a word that is excluded from the loss.
NO_TAG = -1


@dataclass(frozen=True)
class TaggerExamples:
    """Training examples: N sentences of W words in total, with the features of D distinct words.

    Attributes:
        offsets: first word of each sentence, and the end of the last sentence, int64, shape (N + 1,).
        words, lower: id of each word, as written and lower-cased, in [0, D), int32, shape (W,).
        rows: features of the distinct words, int32, shape (D, F).
        tags: number of each word's tag, `NO_TAG` if the tag is not learnt, int64, shape (W,).
    """

    offsets: Int64Array
    words: Int32Array
    lower: Int32Array
    rows: Int32Array
    tags: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64Array:
        """Number of words of each sentence, int64, shape (N,)."""
        return np.diff(self.offsets)


def learnt_tags(treebanks: Treebanks, min_joint: int) -> tuple[str, ...]:
    """Return the universal tags, followed by the frequent joined tags.

    Args:
        treebanks: training sentences.
        min_joint: minimum count of a joined tag.
    """
    counts: Counter[str] = Counter()
    for language, sentences in treebanks.items():
        for sentence in sentences:
            if tokens_and_tags := sentence.as_moses(language):
                counts.update(tag for tag in tokens_and_tags[1] if JOINT in tag)
    return (*UPOS, *sorted(tag for tag, count in counts.items() if count >= min_joint))


def count_examples(treebanks: Treebanks) -> int:
    """Return the number of training examples of treebanks; see `TaggedSentence.as_examples`."""
    return sum(len(one.as_examples(language)) for language, sentences in treebanks.items() for one in sentences)


def tagger_examples(treebanks: Treebanks, tags: Sequence[str], buckets: int) -> TaggerExamples:
    """Make training examples; see `TaggedSentence.as_examples`.

    Args:
        treebanks: training sentences.
        tags: tags to learn.
        buckets: rows of the table of features.
    """
    tag_numbers = {tag: number for number, tag in enumerate(tags)}
    ids: dict[tuple[str, str], int] = {}
    words: list[int] = []
    lower: list[int] = []
    numbers: list[int] = []
    lengths: list[int] = []
    for language, sentences in treebanks.items():
        for sentence in sentences:
            for forms, own in sentence.as_examples(language):
                words += [ids.setdefault((language, word), len(ids)) for word in forms]
                lower += [ids.setdefault((language, word), len(ids)) for word in lower_cased(forms)]
                numbers += [tag_numbers.get(tag, NO_TAG) for tag in own]
                lengths.append(len(forms))
    offsets = prefix_sums(lengths)
    rows = np.concatenate([feature_rows([word], language, buckets) for language, word in ids])
    return TaggerExamples(
        offsets, np.array(words, np.int32), np.array(lower, np.int32), rows, np.array(numbers, np.int64)
    )
