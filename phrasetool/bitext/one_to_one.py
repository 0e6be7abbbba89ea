"""Which candidates are taken for translations: those of one direction, of both, or each sentence once at most."""

from __future__ import annotations

import numpy as np

from phrasetool.bitext.neighbour_margins import Candidates
from phrasetool.phrases import DoubleArray, Int64Array

RETRIEVALS = ("max", "forward", "backward", "intersection")


def retrieve(found: Candidates, how: str = "max") -> Int64Array:
    """The pairs that are taken, the best first; of equally good ones the first.

    Args:
        found: candidates.
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
    forward = _best_of_each(found, np.flatnonzero(found.forward), found.sources)
    backward = _best_of_each(found, np.flatnonzero(found.backward), found.targets)
    if how == "forward":
        return _best_first(found.scores, forward)
    if how == "backward":
        return _best_first(found.scores, backward)
    if how == "intersection":
        return _best_first(found.scores, np.intersect1d(forward, backward))
    ranked = _best_first(found.scores, np.union1d(forward, backward))
    return ranked[_first_uses(found.sources[ranked], found.targets[ranked])]


def best_of_both(found: Candidates, count: int) -> Int64Array:
    """The places of the candidates that are among the `count` best of their source or of their target; ascending."""
    chosen = np.zeros(len(found), np.bool_)
    for own in (found.sources, found.targets):
        order = np.lexsort((np.arange(len(found)), -found.scores, own))
        ordered = own[order]
        begins = np.flatnonzero(np.concatenate([np.ones(min(len(own), 1), np.bool_), ordered[1:] != ordered[:-1]]))
        lengths = np.diff(np.append(begins, len(own)))
        ranks = np.arange(len(own)) - np.repeat(begins, lengths)
        chosen[order[ranks < count]] = True
    return np.flatnonzero(chosen).astype(np.int64)


def _best_of_each(found: Candidates, places: Int64Array, own: Int64Array) -> Int64Array:
    """Of each sentence that has some, its best place."""
    order = places[np.lexsort((places, -found.scores[places], own[places]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = own[order][1:] != own[order][:-1]
    return order[first]


def _best_first(scores: DoubleArray, places: Int64Array) -> Int64Array:
    found: Int64Array = places[np.lexsort((places, -scores[places]))]
    return found


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
