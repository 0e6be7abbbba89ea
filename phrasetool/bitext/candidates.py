"""Candidate sentence pairs: their margins over other neighbours, and the selection of pairs.

The margin relates the cosine of a pair to the cosines that its sides reach with others (Artetxe and Schwenk, 2019):

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
# A ratio to next to nothing is meaningless: sentences without near neighbours are not translations of each other.
_LOWEST = 0.05
RETRIEVALS = ("max", "forward", "backward", "intersection")


@dataclass(frozen=True)
class Candidates:
    """Pairs that may be translations: each source with its neighbours, each target with its own; each pair once.

    Attributes:
        sources, targets: int64, shape (C,), ascending by source, then by target.
        cosines: float32, shape (C,).
        scores: float64, shape (C,).
        forward, backward: whether the target is a neighbour of the source, and the source of the target.
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
        """Some of them."""
        return Candidates(
            self.sources[chosen], self.targets[chosen], self.cosines[chosen], self.scores[chosen],
            self.forward[chosen], self.backward[chosen],
        )  # fmt: skip


def reach(found: Neighbours) -> DoubleArray:
    """The mean cosine of each row with its neighbours; float64, shape (N,); 0 of one that has none."""
    there = found.rows >= 0
    total = np.where(there, found.cosines, 0).sum(1, dtype=np.float64)
    found_reach: DoubleArray = total / np.maximum(there.sum(1), 1)
    return found_reach


def margin(cosines: FloatArray, around: DoubleArray, how: str) -> DoubleArray:
    """The margin of pairs; float64.

    Args:
        cosines, around: a and b, shape (C,).
        how: one of `MARGINS`.

    Raises:
        ValueError: there is no such margin.
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
    """The pairs of neighbours of both directions, with their margins.

    Args:
        forward, backward: neighbours of the sources among the targets, and of the targets among the sources.
        how: one of `MARGINS`.
        min_cosine: pairs below it are left out, whatever their margin.

    Raises:
        ValueError: there is no such margin.
    """
    parts: list[tuple[NDArray[Any], ...]] = []
    for which, found in enumerate((forward, backward)):
        own = np.repeat(np.arange(len(found.rows), dtype=np.int64), found.rows.shape[1])
        other, cosines = found.rows.reshape(-1), found.cosines.reshape(-1)
        good = (other >= 0) & (cosines >= np.float32(min_cosine))
        pair = (other[good], own[good]) if which else (own[good], other[good])
        parts.append((*pair, cosines[good], np.full(int(good.sum()), which)))
    whole: list[NDArray[Any]] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((whole[3], whole[1], whole[0]))
    sources, targets, cosines, directions = (column[order] for column in whole)
    new = np.ones(len(sources), np.bool_)
    new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    places = np.flatnonzero(new)
    seen = np.zeros((2, len(places)), np.bool_)
    seen[directions, np.cumsum(new) - 1] = True
    around = (reach(forward)[sources[places]] + reach(backward)[targets[places]]) / 2
    return Candidates(
        sources[places], targets[places], cosines[places], margin(cosines[places], around, how), seen[0], seen[1]
    )


def retrieve(candidates: Candidates, how: str = "max") -> Int64Array:
    """The pairs that are taken, the best first; of equally good ones the first.

    Args:
        candidates: candidate pairs.
        how: `forward`, the best target of each source among its neighbours; `backward`, the best source of each
            target; `intersection`, what both say; `max`, of what either says, the best first, each sentence once
            (LASER's).

    Returns:
        int64, places among the candidates.

    Raises:
        ValueError: there is no such way.
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
    """The places of the candidates that are among the `count` best of their source or of their target; ascending."""
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
    """Of each sentence that has some, its best place."""
    order = places[np.lexsort((places, -candidates.scores[places], own[places]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = own[order][1:] != own[order][:-1]
    return order[first]


def _best_first(scores: DoubleArray, places: Int64Array) -> Int64Array:
    places_in_order: Int64Array = places[np.lexsort((places, -scores[places]))]
    return places_in_order


def _first_uses(sources: Int64Array, targets: Int64Array) -> Int64Array:
    """Which pairs, in order, have no side that one taken before has."""
    used: tuple[set[int], set[int]] = set(), set()
    taken = []
    for place, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        if source not in used[0] and target not in used[1]:
            used[0].add(source)
            used[1].add(target)
            taken.append(place)
    return np.array(taken, np.int64)
