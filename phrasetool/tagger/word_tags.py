"""The tags of a block of sentences."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from phrasetool.phrases import FloatArray, Phrases
from phrasetool.tagger.tag_scores import tag_scores
from phrasetool.tagger.tagger_shape import TaggerShape
from phrasetool.tagger.word_features import feature_rows


def word_tags(
    arrays: Mapping[str, FloatArray], shape: TaggerShape, tags: Sequence[str], sentences: Sequence[Sequence[str]],
    language: str,
) -> list[list[str]]:  # fmt: skip
    """The most probable tag of each word.

    Args:
        arrays: of `TaggerNetwork.arrays`.
        shape: the dimensions of the tagger.
        tags: names of its tags; where there are fewer than it has, the others are never given.
        sentences: words without escapes; a sentence may have none.
        language: of all sentences.
    """
    known: dict[str, int] = {}
    numbers = [known.setdefault(word, len(known)) for words in sentences for word in words]
    lengths = [len(words) for words in sentences]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    texts = Phrases(offsets, np.array(numbers, np.int32))
    scores = tag_scores(arrays, shape, texts, feature_rows(list(known), language, shape.buckets))
    best = np.argmax(scores[:, : len(tags)], axis=1).tolist()
    return [[tags[number] for number in best[first:last]] for first, last in itertools.pairwise(offsets.tolist())]
