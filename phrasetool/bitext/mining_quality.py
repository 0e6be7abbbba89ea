"""Evaluation of mined pairs: precision, recall and F1 against gold pairs, and the threshold with the best F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phrasetool.phrases import DoubleArray

# Maximum number of points of a curve.
_POINTS = 200


@dataclass(frozen=True)
class MiningPoint:
    """Quality of the pairs at or above a threshold.

    Attributes:
        threshold: minimum score of an accepted pair.
        taken: number of accepted pairs.
        right: number of accepted pairs that are gold.
        precision, recall, f1: shares, 0 to 1.
    """

    threshold: float
    taken: int
    right: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class MiningQuality:
    """Quality of mined pairs, measured against gold pairs.

    Attributes:
        mined, gold: numbers of distinct mined pairs and of gold pairs.
        all: quality if every mined pair is accepted.
        best: quality at the threshold with the best F1; None if nothing was mined.
        curve: from the highest threshold to the lowest.
        accuracy_at_1: share of gold sources whose best mined target is gold; a source without a target counts as wrong.
    """

    mined: int
    gold: int
    all: MiningPoint
    best: MiningPoint | None
    curve: list[MiningPoint]
    accuracy_at_1: float


def evaluate_mining(
    scores: DoubleArray, pairs: Sequence[tuple[Any, Any]], gold: set[tuple[Any, Any]], points: int = _POINTS
) -> MiningQuality:
    """Measure the quality of mined pairs.

    Args:
        scores: float64, shape (N,), finite.
        pairs: N sources and targets; of a repeated pair, the best score counts.
        gold: the correct pairs, at least one.
        points: maximum number of points of the curve.

    Raises:
        ValueError: `gold` is empty.
    """
    if not gold:
        raise ValueError("expected gold pairs")
    order = np.argsort(-scores, kind="stable")
    distinct: set[tuple[Any, Any]] = set()
    kept: list[int] = []
    is_gold: list[bool] = []
    best_of: dict[Any, Any] = {}
    for row in order.tolist():
        pair = pairs[row]
        if pair not in distinct:
            distinct.add(pair)
            kept.append(row)
            is_gold.append(pair in gold)
            best_of.setdefault(pair[0], pair[1])
    ranked, hits = scores[kept], np.cumsum(is_gold, dtype=np.int64)
    # Possible thresholds: after the last of equal scores.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, np.int64)
    curve = [_point(float(ranked[end]), int(end) + 1, int(hits[end]), len(gold)) for end in ends.tolist()]
    gold_sources = {source for source, _ in gold}
    first = sum((source, best_of[source]) in gold for source in gold_sources if source in best_of)
    everything = curve[-1] if curve else _point(0.0, 0, 0, len(gold))
    # `max` returns the highest of equally good thresholds.
    best = max(curve, key=lambda point: point.f1, default=None)
    return MiningQuality(len(kept), len(gold), everything, best, _thinned(curve, points), first / len(gold_sources))


def best_threshold(scores: DoubleArray, pairs: Sequence[tuple[Any, Any]], gold: set[tuple[Any, Any]]) -> float:
    """Return the threshold with the best F1; a value above every score if no pair is gold.

    The threshold is half-way to the next lower score, so that it does not depend on the last bits of a score.

    Raises:
        ValueError: `gold` is empty.
    """
    quality = evaluate_mining(scores, pairs, gold, len(scores) + 1)
    if quality.best is None or not quality.best.right:
        return float(np.nextafter(scores.max(), np.inf)) if len(scores) else 0.0
    lower = [point.threshold for point in quality.curve if point.threshold < quality.best.threshold]
    return (quality.best.threshold + lower[0]) / 2 if lower else quality.best.threshold


def _point(threshold: float, taken: int, right: int, gold: int) -> MiningPoint:
    precision, recall = right / taken if taken else 0.0, right / gold
    f1 = 2 * right / (taken + gold)
    return MiningPoint(threshold, taken, right, precision, recall, f1)


def _thinned(curve: list[MiningPoint], points: int) -> list[MiningPoint]:
    if len(curve) <= points:
        return curve
    rows = np.unique(np.linspace(0, len(curve) - 1, points).round().astype(np.int64))
    return [curve[row] for row in rows.tolist()]
