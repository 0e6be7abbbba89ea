"""Scores of many phrase pairs, in batches that depend on the pairs alone.

The last bits of a product of matrices depend on its size, so who scores pairs must say which of them are scored
together.  Here they are sorted by the length of their source, then by its words, then by those of their target, and cut
into batches of one size.
"""

from __future__ import annotations

import numpy as np

from phrasetool.nn.positions import LONGEST
from phrasetool.phrases import DoubleArray, Mask, Phrases
from phrasetool.translator.likelihood import pair_order, pair_scores
from phrasetool.translator.network import NeuralTranslator
from phrasetool.unique_phrases import distinct_phrases

# Pairs of a batch: larger ones leave the cache, smaller ones spend their time between products.
_BATCH = 1024


def is_too_long(sources: Phrases, targets: Phrases) -> Mask:
    """Which of N pairs have more words on a side than a translator takes; bool, shape (N,)."""
    return np.asarray(np.maximum(sources.lengths, targets.lengths) > LONGEST)


def _can_be_scored(sources: Phrases, targets: Phrases) -> Mask:
    """Which of N pairs have words on both sides, and not too many; bool, shape (N,)."""
    shortest = np.minimum(sources.lengths, targets.lengths)
    return np.asarray((shortest > 0) & ~is_too_long(sources, targets))


def scores_of_pairs(
    module: NeuralTranslator, sources: Phrases, targets: Phrases, reading: str, temperature: float
) -> DoubleArray:
    """The scores of N pairs, float64, shape (N,); see `likelihood`.  NaN where a pair cannot be scored.

    Args:
        module: not in training.
        sources: N phrases, which may be equal.
        targets: N phrases.
        reading: one of `architecture.READINGS`.
        temperature: of the translator.

    Raises:
        ValueError: a softmax is asked for densities.
    """
    scores = np.full(len(sources), np.nan)
    places = np.flatnonzero(_can_be_scored(sources, targets))
    sources, targets = sources.select(places), targets.select(places)
    numbers, distinct = distinct_phrases(sources)
    order = pair_order(distinct.lengths, distinct)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    distinct, numbers = distinct.select(order), ranks[numbers]
    rows = pair_order(numbers, targets)
    for first in range(0, len(rows), _BATCH):
        batch = rows[first : first + _BATCH]
        which, source_of = np.unique(numbers[batch], return_inverse=True)
        scores[places[batch]] = pair_scores(
            module, distinct.select(which), targets.select(batch), source_of, reading, temperature
        )
    return scores
