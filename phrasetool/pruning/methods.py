"""Pruning methods: a single criterion or a combination of several.

Several criteria are combined as the product of their factors, the mean of their ranks, the intersection (entries that
all criteria would keep) or the union (entries that any criterion would keep).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray
from phrasetool.pruning.criteria import CRITERIA, Criterion, Random
from phrasetool.pruning.measures import SCORED_MASKS, Measure, Measures, TableMeasures
from phrasetool.pruning.thresholds import Threshold

COMBINATIONS = ("product", "rank", "intersection", "union")
NAMES = tuple(criterion.name for criterion in CRITERIA)
# Bounds of the scores of a criterion; scores of the others are at least 0 and have no upper bound.
BOUNDS = {
    "semantic": (-1.0, 1.0),
    "parallel": (0.0, 1.0),
    "syntax": (-1.0, 1.0),
    "probability": (0.0, 1.0),
    "random": (0.0, 1.0),
}
# Higher powers would exceed single precision.
LARGEST_WEIGHT = 10.0

# The + of `a+e` and of `1e+5` does not join criteria.
_JOIN = re.compile(r"(?<!:a)(?<!\de)\+")
_PART = re.compile(r"\s*(?P<name>[^*:]*?)\s*(?:\*(?P<weight>[^:]*))?(?::(?P<threshold>.*))?")
_LARGEST = np.log(np.float64(np.finfo(np.float32).max))


@dataclass(frozen=True)
class Method:
    """A criterion or a combination of several.

    Attributes:
        parts: the criteria.
        combine: `product` of their factors, mean `rank` by their scores, `intersection` (keep what every criterion
            would keep) or `union` (keep what any criterion would keep).
        weights: weights of the criteria, exponents in a product and weights in a mean of ranks; empty: all are 1.
        thresholds: thresholds of the criteria in an intersection, a union or alone; empty: the cut is applied to the
            combined scores.
    """

    parts: tuple[Criterion, ...]
    combine: str = "product"
    weights: tuple[float, ...] = ()
    thresholds: tuple[Threshold, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the criteria."""
        return tuple(part.name for part in self.parts)

    @property
    def name(self) -> str:
        """Description for the signature line: the text that `parse_method` reads, and the combination."""
        weights = [f"*{weight:g}" if weight != 1 else "" for weight in self._weights]
        thresholds = [f":{threshold.text}" for threshold in self.thresholds] or [""] * len(self.parts)
        parts = map("".join, zip(self.names, weights, thresholds, strict=True))
        return "+".join(parts) + (f"({self.combine})" if len(self.parts) > 1 else "")

    @property
    def needs(self) -> frozenset[Measure[Any]]:
        """The measures that the method needs."""
        needs = [part.needs for part in self.parts]
        if len(self.parts) > 1 and self.combine == "product":
            needs += [part.factor_needs for part in self.parts]
        return frozenset().union(*needs)

    @property
    def uses_similarities(self) -> bool:
        """Whether a criterion needs similarities, of a model or stored ones."""
        return not self.needs.isdisjoint(SCORED_MASKS)

    @property
    def by_source(self) -> bool:
        """Whether a criterion compares the entries of a source."""
        return any(part.by_source for part in self.parts)

    @property
    def _weights(self) -> tuple[float, ...]:
        return self.weights or (1.0,) * len(self.parts)

    def check_threshold(self, threshold: Threshold | None) -> None:
        """Reject thresholds, given or of the criteria, outside the range of the scores.

        Raises:
            ValueError: a threshold is out of range; the message names the first one.
        """
        for name, own in zip(self.names, self.thresholds, strict=False):
            _check_bounds(name, own)
        if threshold is None:
            return
        if len(self.parts) == 1:
            _check_bounds(self.names[0], threshold)
        elif self.combine != "product" and not 0 <= threshold.value(0.0) <= 1:
            raise ValueError(f"{threshold.text} is outside the range of ranks, 0 to 1")

    def scores(self, measures: Measures) -> FloatArray:
        """Return the scores, float32, shape (N,): larger for better entries; infinite for malformed lines.

        The scores of a single criterion are its own, and those of a product are products of factors.  Other
        combinations use ranks, from 0 for the worst entry to 1 for the best: their mean, the lowest rank for an
        intersection, and the highest for a union.  A cut of an intersection therefore keeps the entries that each
        criterion would keep at that rank.
        """
        return next(self.scores_by_part(measures))

    def scores_by_part(self, table: TableMeasures) -> Iterator[FloatArray]:
        """Yield the `scores` of each part of a table.

        Ranks take 4 bytes per entry and criterion.
        """
        # A fixed order makes the rounding of sums and products independent of the order of the names.
        criteria = sorted(zip(self.parts, self._weights, strict=True), key=lambda part: part[0].name)
        alone, weights = len(criteria) == 1, [weight for _, weight in criteria]
        ranked = not alone and self.combine != "product"
        every = [_sorted_scores(criterion, table) for criterion, _ in criteria] if ranked else []
        for measures in table.parts():
            good = ~measures.malformed
            scores = np.full(len(measures), np.inf, np.float32)
            if alone:
                scores[good] = criteria[0][0].scores(measures)[good]
            elif self.combine == "product":
                scores[good] = _product([criterion.factor(measures)[good] for criterion, _ in criteria], weights)
            else:
                criterion_scores = [criterion.scores(measures)[good] for criterion, _ in criteria]
                scores[good] = self._of_ranks(
                    [_ranks(*pair) for pair in zip(criterion_scores, every, strict=True)], weights
                )
            yield scores

    def _of_ranks(self, ranks: list[FloatArray], weights: list[float]) -> FloatArray:
        if self.combine == "rank":
            even = len(set(weights)) == 1
            mean = np.mean(ranks, axis=0, dtype=np.float32) if even else np.average(ranks, axis=0, weights=weights)
            return np.asarray(mean, np.float32)
        choose = np.minimum if self.combine == "intersection" else np.maximum
        combined: FloatArray = choose.reduce(ranks)
        return combined

    def criterion_scores(self, measures: Measures) -> FloatArray:
        """Return each criterion's score of each entry, float32, shape (N, C); infinite for malformed lines."""
        criterion_scores = np.stack([part.scores(measures) for part in self.parts], axis=1)
        criterion_scores[measures.malformed] = np.inf
        return criterion_scores

    def below(self, criterion_scores: FloatArray, alpha: float) -> npt.NDArray[np.bool_]:
        """Return where a criterion's score is below the criterion's own threshold, bool, shape (N, C).

        Args:
            criterion_scores: result of the method `criterion_scores`.
            alpha: -ln p of a pair whose sides occur once each, together.
        """
        return criterion_scores < np.array([threshold.value(alpha) for threshold in self.thresholds], np.float32)

    def fails(self, below: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the entries that the combination of the thresholds removes, bool, shape (N,), from `below`."""
        choose = np.logical_and if self.combine == "union" else np.logical_or
        failed: npt.NDArray[np.bool_] = choose.reduce(below, axis=1)
        return failed


def _product(factors: list[FloatArray], weights: list[float]) -> FloatArray:
    """Return the product of factors raised to their weights, float32, finite."""
    if all(weight == 1 for weight in weights):
        product: FloatArray = np.prod(factors, axis=0, dtype=np.float32)
        return product
    total = np.zeros(len(factors[0]), np.float64)
    with np.errstate(divide="ignore"):
        for factor, weight in zip(factors, weights, strict=True):
            total += weight * np.log(factor.astype(np.float64))
    return np.exp(np.minimum(total, _LARGEST)).astype(np.float32)


def _sorted_scores(criterion: Criterion, table: TableMeasures) -> FloatArray:
    """Return a criterion's scores of all well-formed entries of a table, ascending."""
    every, count = np.empty(len(table), np.float32), 0
    for measures in table.parts():
        scores = criterion.scores(measures)[~measures.malformed]
        every[count : count + len(scores)] = scores
        count += len(scores)
    every = every[:count]
    every.sort()
    return every


def _ranks(values: FloatArray, every: FloatArray) -> FloatArray:
    """Return the ranks of values among all, from 0 for the lowest to 1 for the highest; ties get their mean rank."""
    if len(every) < 2:
        return np.ones(len(values), np.float32)
    # Each distinct value is searched once, in ascending order.
    different, numbers = np.unique(values, return_inverse=True)
    first, last = (np.searchsorted(every, different, side) for side in ("left", "right"))
    means = last - (last - first + 1) / 2
    ranks: FloatArray = (means[numbers] / (len(every) - 1)).astype(np.float32)
    return ranks


def parse_method(text: str, combine: str | None = "product", seed: int = 1) -> Method:
    """Parse a method such as `composition*2+semantic` or `semantic:0.7+significance:a+e`.

    Args:
        text: names of criteria joined by `+`, each optionally followed by `*` and a weight or `:` and a threshold.
        combine: one of `COMBINATIONS`; None: the intersection if there are thresholds, else the product.
        seed: seed of the random criterion.

    Raises:
        ValueError: a name is unknown or duplicate, a weight or a threshold is invalid or not supported by the
            combination, or the combination is unknown.
    """
    parts, weights, thresholds = [], [], []
    for piece in _JOIN.split(text):
        match = _PART.fullmatch(piece)
        if match is None:
            raise ValueError(f"{piece!r} is not NAME, NAME*WEIGHT or NAME:THRESHOLD")
        part = _criterion(match["name"], seed)
        if part in parts:
            raise ValueError(f"{part.name} occurs twice in {text!r}")
        parts.append(part)
        weights.append(_weight(part.name, match["weight"]))
        thresholds.append(_threshold(part.name, match["threshold"]))
    own_thresholds = tuple(threshold for threshold in thresholds if threshold)
    if own_thresholds and len(own_thresholds) < len(parts):
        without = next(part.name for part, threshold in zip(parts, thresholds, strict=True) if not threshold)
        raise ValueError(f"{without} has no threshold, but others have: give one to each, or to none")
    combine = combine or ("intersection" if own_thresholds else "product")
    _check_combination(combine, len(parts), weights, bool(own_thresholds))
    return Method(
        tuple(parts), combine, tuple(weights) if any(weight != 1 for weight in weights) else (), own_thresholds
    )


def _criterion(name: str, seed: int) -> Criterion:
    for criterion in CRITERIA:
        if criterion.name == name:
            return Random(seed) if isinstance(criterion, Random) else criterion
    nearest = difflib.get_close_matches(name, NAMES, 1)
    meant = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ValueError(f"unknown criterion {name!r}{meant} (there are {', '.join(NAMES)})")


def _weight(name: str, text: str | None) -> float:
    if text is None:
        return 1.0
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight <= LARGEST_WEIGHT:
        raise ValueError(f"the weight {text!r} of {name} is not a number above 0, at most {LARGEST_WEIGHT:g}")
    return weight


def _threshold(name: str, text: str | None) -> Threshold | None:
    if text is None:
        return None
    try:
        threshold = Threshold(text.strip())
    except ValueError as error:
        raise ValueError(f"the threshold of {name}: {error}") from None
    if threshold.named and name != "significance":
        raise ValueError(f"{threshold.text} is a threshold of significance, not of {name}")
    return threshold


def _check_bounds(name: str, threshold: Threshold) -> None:
    if name not in BOUNDS or threshold.named:
        return
    least, most = BOUNDS[name]
    if not least <= threshold.value(0.0) <= most:
        raise ValueError(f"{threshold.text} is outside the range of {name}, {least:g} to {most:g}")


def _check_combination(combine: str, count: int, weights: list[float], own_thresholds: bool) -> None:
    if combine not in COMBINATIONS:
        raise ValueError(f"unknown combination {combine!r}; expected one of {', '.join(COMBINATIONS)}")
    weighted = any(weight != 1 for weight in weights)
    if weighted and count == 1:
        raise ValueError("one criterion needs no weight")
    if weighted and combine not in ("product", "rank"):
        raise ValueError(f"weights have no effect in {'an' if combine == 'intersection' else 'a'} {combine}")
    if own_thresholds and count > 1 and combine not in ("intersection", "union"):
        raise ValueError(f"criteria with their own thresholds are an intersection or a union, not a {combine}")
