"""Quality of mined pairs: precision, recall and F1 against gold pairs, and the threshold where F1 is best."""

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
    """Pairs from a threshold up.

    Attributes:
        threshold: the lowest score that is taken.
        taken: how many pairs are.
        right: how many of them are gold.
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
    """Mined pairs against gold pairs.

    Attributes:
        mined, gold: how many there are.
        all: when every mined pair is taken.
        best: at the threshold with the best F1; None if nothing was mined.
        curve: from the highest threshold to the lowest.
        accuracy_at_1: share of gold sources whose best mined target is gold; one without a target counts as wrong.
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
    """Measure mined pairs.

    Args:
        scores: float64, shape (N,), finite.
        pairs: N sources and targets; of a repeated pair, the best score counts.
        gold: the right pairs, at least one.
        points: of the curve.

    Raises:
        ValueError: `gold` is empty.
    """
    if not gold:
        raise ValueError("expected gold pairs")
    order = np.argsort(-scores, kind="stable")
    seen: set[tuple[Any, Any]] = set()
    kept: list[int] = []
    right: list[bool] = []
    best_of: dict[Any, Any] = {}
    for place in order.tolist():
        pair = pairs[place]
        if pair not in seen:
            seen.add(pair)
            kept.append(place)
            right.append(pair in gold)
            best_of.setdefault(pair[0], pair[1])
    ranked, hits = scores[kept], np.cumsum(right, dtype=np.int64)
    # Where a threshold can lie: behind the last of equal scores.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, np.int64)
    curve = [_point(float(ranked[end]), int(end) + 1, int(hits[end]), len(gold)) for end in ends.tolist()]
    gold_sources = {source for source, _ in gold}
    first = sum((source, best_of[source]) in gold for source in gold_sources if source in best_of)
    everything = curve[-1] if curve else _point(0.0, 0, 0, len(gold))
    # Of equally good ones, the highest threshold.
    best = max(curve, key=lambda point: point.f1, default=None)
    return MiningQuality(len(kept), len(gold), everything, best, _thinned(curve, points), first / len(gold_sources))


def best_threshold(scores: DoubleArray, pairs: Sequence[tuple[Any, Any]], gold: set[tuple[Any, Any]]) -> float:
    """The threshold with the best F1; above every score if no pair is gold.

    It lies half-way to the next lower score, so that it does not hang on the last bits of one.

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
    places = np.unique(np.linspace(0, len(curve) - 1, points).round().astype(np.int64))
    return [curve[place] for place in places.tolist()]
