"""Training with word vectors that stay as they are: a word without one is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from phrasetool.embeddings.files import load_vectors
from phrasetool.errors import DataError
from phrasetool.models.bilingual import BilingualModel
from phrasetool.models.fit import by_cosine, measure_fit
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.scoring.telling_apart import CHANCE
from phrasetool.train.checks import Doubt
from phrasetool.train.data import PhrasePairs
from phrasetool.training.settings import TrainingSettings
from phrasetool.training.start import SIDES, Start
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary

# Pairs that a model is measured on.
_SAMPLE = 2000


def with_known_words(
    pairs: PhrasePairs, settings: TrainingSettings, starts: tuple[Start, Start]
) -> tuple[PhrasePairs, tuple[Start, Start]]:
    """Pairs in which a word without a vector is unknown, and starts that need not read the vectors again.

    Pairs and starts for encoders whose words learn come back as they are.

    Raises:
        DataError: a file of vectors cannot be read, has another dimension or values that are not finite, or knows no
            word of its side.
        ValueError: vectors of one space are wanted, and none are given.
    """
    if not settings.kind.fixed_words:
        return pairs, starts
    if not settings.kind.learns and not all(start.vectors for start in starts):
        raise ValueError("without a transformation to learn, both languages need word vectors of one space, in files")
    phrases, vocabularies = [pairs.sources, pairs.targets], [pairs.source_vocabulary, pairs.target_vocabulary]
    made = list(starts)
    for which, start in enumerate(starts):
        if not start.vectors:
            continue
        known = _known(which, vocabularies[which], settings, start)
        made[which] = replace(start, loaded=known)
        phrases[which], vocabularies[which] = _only(known, phrases[which], vocabularies[which])
    return replace(
        pairs, sources=phrases[0], targets=phrases[1],
        source_vocabulary=vocabularies[0], target_vocabulary=vocabularies[1],
    ), (made[0], made[1])  # fmt: skip


def check_one_space(model: BilingualModel, pairs: PhrasePairs, doubt: Doubt) -> None:
    """Say it where a model that learnt nothing tells pairs from others hardly better than chance.

    Args:
        model: of vectors that should be of one space.
        pairs: that it is to tell.
        doubt: told if it does not.
    """
    step = max(1, len(pairs) // _SAMPLE)
    some = np.arange(0, len(pairs), step)
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    fit = measure_fit(by_cosine(model.scorer()), (pairs.sources.select(some), pairs.targets.select(some)), vocabularies)
    if fit.can_tell and fit.chance < CHANCE:
        doubt(
            "the word vectors of the two languages are not of one space: they tell pairs from others no better than "
            f"chance (AUC {fit.chance:.2f}); with a transformation that is learnt they may do"
        )


def _known(which: int, vocabulary: Vocabulary, settings: TrainingSettings, start: Start) -> Mapping[bytes, FloatArray]:
    assert start.vectors is not None
    dimension = settings.kind.word_dimension(settings.dimension)
    found = load_vectors(start.vectors, vocabulary.words, dimension, start.opened)
    for word, vector in found.items():
        if not np.isfinite(vector).all():
            text = word.decode("utf-8", "replace")
            raise DataError(start.vectors, f"the vector of {text!r} holds values that are not finite")
    # A zero vector says nothing.
    kept = {word: vector for word, vector in found.items() if vector.any()}
    if not any(word in kept or word.lower() in kept for word in vocabulary.words[1:]):
        raise DataError(start.vectors, f"knows no word of the {SIDES[which]}")
    return kept


def _only(known: Mapping[bytes, FloatArray], phrases: Phrases, vocabulary: Vocabulary) -> tuple[Phrases, Vocabulary]:
    """The same with an entry in the vocabulary for known words alone."""
    kept = [i for i, word in enumerate(vocabulary.words) if i and (word in known or word.lower() in known)]
    numbers = np.full(len(vocabulary), UNKNOWN, np.int32)
    numbers[kept] = np.arange(1, len(kept) + 1)
    lost = int(vocabulary.counts.sum() - vocabulary.counts[kept].sum())
    words = [UNKNOWN_WORD, *(vocabulary.words[i] for i in kept)]
    reduced = Vocabulary(words, [lost, *vocabulary.counts[kept].tolist()])
    return Phrases(phrases.offsets, numbers[phrases.words]), reduced
