"""A trained classifier measured on held-out pairs, as the paper does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.pair_classifier.containment import containment_negatives
from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.pair_classifier.labelled_pairs import WrongTargets, contained_pairs, encoded_logits, random_pairs
from phrasetool.pair_classifier.model import ParallelModel
from phrasetool.pair_classifier.pair_quality import (
    PairQuality,
    area_under_curve,
    calibration_error,
    probabilities_of,
    quality_at,
)
from phrasetool.pair_classifier.token_inputs import TARGET
from phrasetool.phrases import FloatArray
from phrasetool.train.text_pairs import TextPairs

_NEGATIVES = 5
# Rows of a table of cosines at a time.
_ROWS = 512


@dataclass(frozen=True)
class ClassifierMeasures:
    """What a classifier is worth on N held-out pairs.

    Attributes:
        pairs: N.
        random_half, random_best: with five random wrong targets a pair, at 0.5 and at the threshold that was best on
            the development set of training.
        contained_half, contained_best: with a wrong target by containment a pair, at the same thresholds.
        auc: of the random pairs, see `area_under_curve`.
        calibration_error: of the random pairs, see `calibration_error`.
        accuracy_at_1: share of sources whose nearest target by cosine, of all, is a translation; by the vectors that
            sentences are searched for by.
    """

    pairs: int
    random_half: PairQuality
    random_best: PairQuality
    contained_half: PairQuality
    contained_best: PairQuality
    auc: float
    calibration_error: float
    accuracy_at_1: float


def measured(
    model: ParallelModel, texts: TextPairs, seed: int, wrong: WrongTargets = containment_negatives
) -> ClassifierMeasures:
    """Measure a classifier.

    Args:
        model: any.
        texts: true pairs, two different ones at least.
        seed: of the wrong ones.
        wrong: makes wrong targets by containment.

    Raises:
        ValueError: no pair can be told from another.
    """
    random = random_pairs(texts, _NEGATIVES, seed)
    if random.parallel.all():
        raise ValueError("no target is wrong for any source: there is nothing to tell apart")
    contained = contained_pairs(texts, seed, wrong)
    logits, sources = encoded_logits(model.classifier, random)
    found = probabilities_of(logits, model.temperature)
    within = probabilities_of(encoded_logits(model.classifier, contained, sources)[0], model.temperature)
    half, best = model.thresholds["half"], model.thresholds["best"]
    if model.search:
        sources = model.search.encode(texts.sources, texts.source_words)
        targets = model.search.encode(texts.targets, texts.target_words)
    else:
        targets = model.classifier.sentence_vectors(TARGET, texts.targets, texts.target_words)
    return ClassifierMeasures(
        len(texts), quality_at(found, random.parallel, half), quality_at(found, random.parallel, best),
        quality_at(within, contained.parallel, half), quality_at(within, contained.parallel, best),
        area_under_curve(found, random.parallel), calibration_error(found, random.parallel),
        _accuracy(sources, targets, KnownTranslations(texts.sources, texts.targets)),
    )  # fmt: skip


def _accuracy(sources: FloatArray, targets: FloatArray, known: KnownTranslations) -> float:
    """The share of sources whose nearest target is a translation."""
    lengths = np.linalg.norm(targets, axis=1, keepdims=True)
    unit = targets / np.where(lengths > 0, lengths, 1)
    nearest = np.concatenate(
        [np.argmax(sources[first : first + _ROWS] @ unit.T, axis=1) for first in range(0, len(sources), _ROWS)]
    )
    return float(known.translates(np.arange(len(sources)), nearest).mean())
