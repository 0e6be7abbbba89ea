"""Whether a classifier of sentence pairs fits pairs: how many of their words it knows, and whether it tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phrasetool.models.fit import ModelFit, measure_fit
from phrasetool.pair_classifier.model import ParallelModel
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.sentences import read_words
from phrasetool.text_encoders.text_encoder import SIDES, Side
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary


def fit_of_pairs(
    model: ParallelModel, sources: Sequence[bytes], targets: Sequence[bytes], swapped: bool = False,
    sentences: bool = True,
) -> ModelFit:  # fmt: skip
    """How well a classifier fits pairs, see `measure_fit`.

    A model that reads pieces knows every word; then the AUC alone says something.

    Args:
        model: any.
        sources, targets: N sentences or phrases each, words between spaces.
        swapped: measure how well it would fit if source and target were swapped.
        sentences: these are sentences, not phrases: a word on both sides does not make them alike.
    """
    texts = (targets, sources) if swapped else (sources, targets)
    sides, vocabularies = [], []
    for which, lines in enumerate(texts):
        phrases, words = read_words(lines)
        vocabulary = model.vocabularies[which] if model.vocabularies else _vocabulary(words)
        known = {word: number for number, word in enumerate(vocabulary.words)}
        ids = np.array([known.get(word, UNKNOWN) for word in words], np.int32)
        sides.append(Phrases(phrases.offsets, ids[phrases.words] if words else phrases.words))
        vocabularies.append(vocabulary)
    source, target = vocabularies

    def compare(some: Phrases, others: Phrases) -> Callable[[Int64Array, Int64Array], FloatArray]:
        vectors = [_encode(model, some, source, SIDES[0]), _encode(model, others, target, SIDES[1])]

        def fits(rows: Int64Array, numbers: Int64Array) -> FloatArray:
            found = model.classify(vectors[0][rows], some.lengths[rows], vectors[1][numbers], others.lengths[numbers])
            return found.astype(np.float32)

        return fits

    return measure_fit(compare, (sides[0], sides[1]), (source, target), texts, shared=sentences)


def _vocabulary(words: Sequence[bytes]) -> Vocabulary:
    return Vocabulary([UNKNOWN_WORD, *(word for word in words if word != UNKNOWN_WORD)])


def _encode(model: ParallelModel, phrases: Phrases, vocabulary: Vocabulary, side: Side) -> FloatArray:
    """The vectors of phrases in ids of a vocabulary; of its words those are looked up that are there."""
    used, places = np.unique(phrases.words, return_inverse=True)
    words = [vocabulary.words[number] for number in used.tolist()]
    return model.encode_texts(Phrases(phrases.offsets, places.astype(np.int32)), words, side)
