"""Candidates of single source units: what a unit brings, whatever word it is part of.

    p(w|u) = sum over f with u in f of c(f) p(w|f)  /  sum over f with u in f of c(f)

over the single words f, with p(w|f) as in `target_candidates`.  Of words that are units themselves it is p(w|f).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from phrasetool.export.target_candidates import TargetCandidates, offsets_of
from phrasetool.phrases import DoubleArray, Int64Array, Phrases, prefix_sums

# Pairs of units that wait to be added up.
_WAITING = 1 << 24


class _Sums:
    """Sums of numbers by key; added in the order in which they come."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64Array, DoubleArray]] = []
        self._waiting = 0

    def add(self, keys: Int64Array, numbers: DoubleArray) -> None:
        self._parts.append((keys, numbers))
        self._waiting += len(keys)
        if self._waiting > _WAITING:
            self._parts, self._waiting = [self.all()], 0

    def all(self) -> tuple[Int64Array, DoubleArray]:
        """Keys in ascending order, and their sums."""
        keys = np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in self._parts)])
        numbers = np.concatenate([np.zeros(0), *(numbers for _, numbers in self._parts)])
        found, places = np.unique(keys, return_inverse=True)
        return found, np.bincount(places, numbers, len(found)).astype(np.float64)


def unit_candidates(
    pieces: Iterable[TargetCandidates], units_of: Callable[[Phrases], Phrases], vocabulary: int, floor: float
) -> TargetCandidates:
    """The candidates of all source units that occur in single words, in the order of their numbers.

    Args:
        pieces: candidates of phrases.
        units_of: the units of each phrase, each once.
        vocabulary: how many target units there are.
        floor: what is less probable is left out.
    """
    pairs, weights = _Sums(), _Sums()
    for found in pieces:
        rows = np.flatnonzero(found.sources.lengths == 1)
        units = units_of(found.sources.select(rows))
        owners = np.repeat(rows, units.lengths)
        weights.add(units.words.astype(np.int64), found.weights[owners])
        counts = np.diff(found.offsets)[owners]
        starts = prefix_sums(counts)
        places = np.arange(starts[-1]) + np.repeat(found.offsets[:-1][owners] - starts[:-1], counts)
        keys = np.repeat(units.words.astype(np.int64), counts) * vocabulary + found.words[places]
        pairs.add(keys, found.scores[places] * np.repeat(found.weights[owners], counts))
    known, seen = weights.all()
    keys, sums = pairs.all()
    groups = np.searchsorted(known, keys // max(1, vocabulary))
    scores, words = sums / seen[groups], (keys % max(1, vocabulary)).astype(np.int32)
    kept = np.flatnonzero(scores >= floor)
    order = kept[np.lexsort((words[kept], -scores[kept], groups[kept]))]
    sources = Phrases(np.arange(len(known) + 1), known.astype(np.int32))
    return TargetCandidates(sources, seen, offsets_of(groups[order], len(known)), words[order], scores[order])
