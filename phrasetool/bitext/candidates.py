"""Candidate sentence pairs: margin scores and the selection of pairs.

The margin relates the cosine of a pair to the cosines of its sides with their neighbours (Artetxe and Schwenk, 2019):

    score(x, y) = margin(cos(x, y), b(x, y)),   b(x, y) = (mean cosine of x with its k nearest
                                                           + mean cosine of y with its k nearest) / 2

with margin(a, b) = a / b (ratio), a - b (distance) or a (absolute).  Pairs are selected in one direction, in both, or
so that each sentence is in at most one pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phrasetool.bitext.nearest import Neighbours
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask

MARGINS = ("ratio", "distance", "absolute")
# Minimum denominator of a ratio.  Ratios to a value near 0 are meaningless: sentences without near neighbours are not
# translations of each other.
_LOWEST = 0.05
RETRIEVALS = ("max", "forward", "backward", "intersection")


@dataclass(frozen=True)
class Candidates:
    """Distinct pairs of sentences in which one side is a nearest neighbour of the other.

    Attributes:
        sources, targets: int64, shape (C,), ascending by source, then by target.
        cosines: float32, shape (C,).
        scores: float64, shape (C,), the margins.
        forward, backward: bool, shape (C,), whether the target is a neighbour of the source, and vice versa.
    """

    sources: Int64Array
    targets: Int64Array
    cosines: FloatArray
    scores: DoubleArray
    forward: Mask
    backward: Mask

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, chosen: Int64Array) -> Candidates:
        """Return the chosen pairs."""
        return Candidates(
            self.sources[chosen], self.targets[chosen], self.cosines[chosen], self.scores[chosen],
            self.forward[chosen], self.backward[chosen],
        )  # fmt: skip


def reach(neighbours: Neighbours) -> DoubleArray:
    """Return the mean cosine of each row with its neighbours: float64, shape (N,), 0 for rows without neighbours."""
    is_neighbour = neighbours.rows >= 0
    total = np.where(is_neighbour, neighbours.cosines, 0).sum(1, dtype=np.float64)
    mean_cosines: DoubleArray = total / np.maximum(is_neighbour.sum(1), 1)
    return mean_cosines


def margin(cosines: FloatArray, around: DoubleArray, how: str) -> DoubleArray:
    """Return the margin of each pair as float64.

    Args:
        cosines, around: a and b, shape (C,).
        how: one of `MARGINS`.

    Raises:
        ValueError: `how` is not one of `MARGINS`.
    """
    exact = cosines.astype(np.float64)
    if how == "ratio":
        return exact / np.maximum(around, _LOWEST)
    if how == "distance":
        return exact - around
    if how == "absolute":
        return exact
    raise ValueError(f"unknown margin {how!r}; expected one of {', '.join(MARGINS)}")


def candidates(forward: Neighbours, backward: Neighbours, how: str, min_cosine: float = -1.0) -> Candidates:
    """Return the pairs of neighbours of both directions, with their margins.

    Args:
        forward, backward: neighbours of the sources among the targets, and of the targets among the sources.
        how: one of `MARGINS`.
        min_cosine: minimum cosine; pairs below it are left out, whatever their margin.

    Raises:
        ValueError: `how` is not one of `MARGINS`.
    """
    parts: list[tuple[NDArray[Any], ...]] = []
    for direction, neighbours in enumerate((forward, backward)):
        own_rows = np.repeat(np.arange(len(neighbours.rows), dtype=np.int64), neighbours.rows.shape[1])
        neighbour_rows, cosines = neighbours.rows.reshape(-1), neighbours.cosines.reshape(-1)
        kept = (neighbour_rows >= 0) & (cosines >= np.float32(min_cosine))
        pair = (neighbour_rows[kept], own_rows[kept]) if direction else (own_rows[kept], neighbour_rows[kept])
        parts.append((*pair, cosines[kept], np.full(int(kept.sum()), direction)))
    whole: list[NDArray[Any]] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((whole[3], whole[1], whole[0]))
    sources, targets, cosines, directions = (column[order] for column in whole)
    new = np.ones(len(sources), np.bool_)
    new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    first = np.flatnonzero(new)
    by_direction = np.zeros((2, len(first)), np.bool_)
    by_direction[directions, np.cumsum(new) - 1] = True
    around = (reach(forward)[sources[first]] + reach(backward)[targets[first]]) / 2
    return Candidates(
        sources[first],
        targets[first],
        cosines[first],
        margin(cosines[first], around, how),
        by_direction[0],
        by_direction[1],
    )


def retrieve(candidates: Candidates, how: str = "max") -> Int64Array:
    """Select pairs in descending order of score; ties are in the order of the candidates.

    Args:
        candidates: candidate pairs.
        how: `forward`, the best target of each source among its neighbours; `backward`, the best source of each
            target; `intersection`, the pairs that both directions select; `max`, the best pairs that either direction
            selects, each sentence in at most one pair (as in LASER).

    Returns:
        int64, indices of the selected candidates.

    Raises:
        ValueError: `how` is not one of `RETRIEVALS`.
    """
    if how not in RETRIEVALS:
        raise ValueError(f"unknown retrieval {how!r}; expected one of {', '.join(RETRIEVALS)}")
    forward = _best_of_each(candidates, np.flatnonzero(candidates.forward), candidates.sources)
    backward = _best_of_each(candidates, np.flatnonzero(candidates.backward), candidates.targets)
    if how == "forward":
        return _best_first(candidates.scores, forward)
    if how == "backward":
        return _best_first(candidates.scores, backward)
    if how == "intersection":
        return _best_first(candidates.scores, np.intersect1d(forward, backward))
    ranked = _best_first(candidates.scores, np.union1d(forward, backward))
    return ranked[_first_uses(candidates.sources[ranked], candidates.targets[ranked])]


def best_of_both(candidates: Candidates, count: int) -> Int64Array:
    """Return, in ascending order, the indices of candidates among the `count` best of their source or target."""
    chosen = np.zeros(len(candidates), np.bool_)
    for own in (candidates.sources, candidates.targets):
        order = np.lexsort((np.arange(len(candidates)), -candidates.scores, own))
        ordered = own[order]
        begins = np.flatnonzero(np.concatenate([np.ones(min(len(own), 1), np.bool_), ordered[1:] != ordered[:-1]]))
        lengths = np.diff(np.append(begins, len(own)))
        ranks = np.arange(len(own)) - np.repeat(begins, lengths)
        chosen[order[ranks < count]] = True
    return np.flatnonzero(chosen).astype(np.int64)


def _best_of_each(candidates: Candidates, places: Int64Array, own: Int64Array) -> Int64Array:
    """Return the index of the best candidate of each sentence that has candidates."""
    order = places[np.lexsort((places, -candidates.scores[places], own[places]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = own[order][1:] != own[order][:-1]
    return order[first]


def _best_first(scores: DoubleArray, places: Int64Array) -> Int64Array:
    ordered: Int64Array = places[np.lexsort((places, -scores[places]))]
    return ordered


def _first_uses(sources: Int64Array, targets: Int64Array) -> Int64Array:
    """Return the indices of the pairs that share no sentence with a pair selected before them."""
    used: tuple[set[int], set[int]] = set(), set()
    selected = []
    for index, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        if source not in used[0] and target not in used[1]:
            used[0].add(source)
            used[1].add(target)
            selected.append(index)
    return np.array(selected, np.int64)
