"""How many words of a treebank a tagger gives the right part of speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phrasetool.phrases import FloatArray
from phrasetool.tagger.data import Treebanks
from phrasetool.tagger.tagged_sentences import UPOS, TaggedSentence, lower_cased
from phrasetool.tagger.tagger_shape import TaggerShape
from phrasetool.tagger.word_tags import word_tags

# Sentences at a time.
_SENTENCES = 512


@dataclass(frozen=True)
class TagAccuracy:
    """Of some sentences.

    Attributes:
        sentences, words: how many.
        accuracy: share of words with the right tag.
        lower_accuracy: the same of the sentences without capitals.
        by_tag: tag -> share of its words that have it, as they are written.
    """

    sentences: int
    words: int
    accuracy: float
    lower_accuracy: float
    by_tag: Mapping[str, float]


def tag_accuracy(
    arrays: Mapping[str, FloatArray], shape: TaggerShape, tags: Sequence[str], sentences: Sequence[TaggedSentence],
    language: str,
) -> TagAccuracy:  # fmt: skip
    """Measure a tagger on the words of sentences; each has a universal tag, so no joined one is given.

    Args:
        arrays, shape, tags: of the tagger.
        sentences: at least one.
        language: of the sentences.
    """
    right, lower, words = 0, 0, 0
    by_tag = {tag: [0, 0] for tag in UPOS}
    for first in range(0, len(sentences), _SENTENCES):
        part = sentences[first : first + _SENTENCES]
        forms = [list(sentence.words) for sentence in part]
        plain = word_tags(arrays, shape, tags[: len(UPOS)], forms, language)
        small = word_tags(arrays, shape, tags[: len(UPOS)], [lower_cased(one) for one in forms], language)
        for sentence, found, without in zip(part, plain, small, strict=True):
            for wanted, tag, other in zip(sentence.tags, found, without, strict=True):
                words, right, lower = words + 1, right + (tag == wanted), lower + (other == wanted)
                by_tag[wanted][0] += tag == wanted
                by_tag[wanted][1] += 1
    shares = {tag: good / count for tag, (good, count) in by_tag.items() if count}
    return TagAccuracy(len(sentences), words, right / words, lower / words, shares)


def accuracies(
    arrays: Mapping[str, FloatArray], shape: TaggerShape, tags: Sequence[str], treebanks: Treebanks
) -> dict[str, TagAccuracy]:
    """The same for each language."""
    return {
        language: tag_accuracy(arrays, shape, tags, sentences, language) for language, sentences in treebanks.items()
    }
