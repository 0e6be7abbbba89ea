"""Evaluation of a classifier: precision, recall, F1, best threshold, AUC, calibration, accuracy of the search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.pair_classifier.inputs import TARGET
from phrasetool.pair_classifier.labelled_pairs import (
    KnownTranslations,
    WrongTargets,
    contained_pairs,
    containment_negatives,
    encoded_logits,
    random_pairs,
)
from phrasetool.pair_classifier.model import PairClassifierModel, probabilities_of
from phrasetool.phrases import DoubleArray, FloatArray, Mask
from phrasetool.ranking import area_under_curve
from phrasetool.training.data import TextPairs

_BINS = 15


@dataclass(frozen=True)
class PairQuality:
    """Quality of the decision "parallel" for labelled pairs.

    Attributes:
        precision, recall, f1: measures if pairs with at least the threshold's probability are called parallel; 0 if no
            pair is.
        threshold: the threshold.
    """

    precision: float
    recall: float
    f1: float
    threshold: float


def quality_at(probabilities: DoubleArray, parallel: Mask, threshold: float) -> PairQuality:
    """Return precision, recall and F1 at a threshold.

    Args:
        probabilities: probabilities of N pairs, shape (N,).
        parallel: labels, shape (N,), at least one true.
        threshold: lowest probability of a pair called parallel.
    """
    predicted = probabilities >= threshold
    right = int((predicted & parallel).sum())
    precision, recall = right / max(int(predicted.sum()), 1), right / int(parallel.sum())
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return PairQuality(precision, recall, f1, float(threshold))


def best_quality(probabilities: DoubleArray, parallel: Mask) -> PairQuality:
    """Return precision, recall and F1 at the threshold with the highest F1; of several such, the highest threshold.

    It lies half-way between the last pair that is called parallel and the first one that is not.
    """
    order = np.argsort(-probabilities, kind="stable")
    ranked, right = probabilities[order], np.cumsum(parallel[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + int(parallel.sum()))
    # No threshold separates pairs of equal probability.
    f1[:-1][ranked[:-1] == ranked[1:]] = -1
    last = int(np.argmax(f1))
    threshold = ranked[last] if last + 1 == len(ranked) else (ranked[last] + ranked[last + 1]) / 2
    # No number lies between two neighbouring floating-point numbers.
    threshold = ranked[last] if threshold <= ranked[min(last + 1, len(ranked) - 1)] else threshold
    return quality_at(probabilities, parallel, float(threshold))


def calibration_error(probabilities: DoubleArray, parallel: Mask) -> float:
    """Return the expected calibration error (Naeini et al. 2015).

    Pairs are put into 15 bins of equal width by their probability; the error is the mean absolute difference between
    the mean probability of a bin and its share of parallel pairs, weighted by the size of the bin.
    """
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    predicted = np.bincount(bins, probabilities, _BINS)
    actual = np.bincount(bins, parallel, _BINS)
    return float(np.abs(predicted - actual).sum() / len(probabilities))


def calibrated_temperature(logits: DoubleArray, parallel: Mask) -> float:
    """Return the divisor of logits, from 0.05 to 20, that maximises the likelihood of the labels.

    Guo et al. (2017), "On Calibration of Modern Neural Networks".

    Args:
        logits: logits of N pairs, shape (N,).
        parallel: labels, shape (N,).
    """
    signed = np.where(parallel, -logits, logits)
    candidates = np.exp(np.linspace(np.log(0.05), np.log(20), 61))
    for _ in range(3):
        losses = [np.logaddexp(0, signed / temperature).mean() for temperature in candidates]
        best = int(np.argmin(losses))
        low, high = candidates[max(best - 1, 0)], candidates[min(best + 1, len(candidates) - 1)]
        candidates = np.exp(np.linspace(np.log(low), np.log(high), 21))
    return float(candidates[len(candidates) // 2])


_NEGATIVES = 5
# Rows of the cosine matrix per block.
_ROWS = 512


@dataclass(frozen=True)
class ClassifierMeasures:
    """Measures of a classifier on N held-out pairs.

    Attributes:
        pairs: N.
        random_half, random_best: with five random negatives per pair, at 0.5 and at the threshold that was best on
            the development set of training.
        contained_half, contained_best: with one negative by containment per pair, at the same thresholds.
        auc: AUC on the random pairs, see `area_under_curve`.
        calibration_error: error on the random pairs, see `calibration_error`.
        accuracy_at_1: share of sources whose nearest target, among all, is a translation; by the cosine of search
            vectors.
    """

    pairs: int
    random_half: PairQuality
    random_best: PairQuality
    contained_half: PairQuality
    contained_best: PairQuality
    auc: float
    calibration_error: float
    accuracy_at_1: float


def measure_pair_classifier(
    model: PairClassifierModel, texts: TextPairs, seed: int, wrong: WrongTargets = containment_negatives
) -> ClassifierMeasures:
    """Measure a classifier on held-out pairs.

    Args:
        model: classifier to measure.
        texts: true pairs, at least two different ones.
        seed: seed of the negative pairs.
        wrong: makes negative targets by containment.

    Raises:
        ValueError: there are no negative pairs.
    """
    random = random_pairs(texts, _NEGATIVES, seed)
    if random.parallel.all():
        raise ValueError("no negative pairs: every target is a known translation of every source")
    contained = contained_pairs(texts, seed, wrong)
    logits, sources = encoded_logits(model.classifier, random)
    probabilities = probabilities_of(logits, model.temperature)
    within = probabilities_of(encoded_logits(model.classifier, contained, sources)[0], model.temperature)
    half, best = model.thresholds["half"], model.thresholds["best"]
    if model.search:
        sources = model.search.encode(texts.sources, texts.source_words)
        targets = model.search.encode(texts.targets, texts.target_words)
    else:
        targets = model.classifier.sentence_vectors(TARGET, texts.targets, texts.target_words)
    return ClassifierMeasures(
        len(texts), quality_at(probabilities, random.parallel, half), quality_at(probabilities, random.parallel, best),
        quality_at(within, contained.parallel, half), quality_at(within, contained.parallel, best),
        area_under_curve(probabilities[random.parallel], probabilities[~random.parallel]),
        calibration_error(probabilities, random.parallel),
        _accuracy(sources, targets, KnownTranslations(texts.sources, texts.targets)),
    )  # fmt: skip


def _accuracy(sources: FloatArray, targets: FloatArray, known: KnownTranslations) -> float:
    """Return the share of sources whose nearest target is a translation."""
    lengths = np.linalg.norm(targets, axis=1, keepdims=True)
    unit = targets / np.where(lengths > 0, lengths, 1)
    nearest = np.concatenate(
        [np.argmax(sources[first : first + _ROWS] @ unit.T, axis=1) for first in range(0, len(sources), _ROWS)]
    )
    return float(known.translates(np.arange(len(sources)), nearest).mean())
