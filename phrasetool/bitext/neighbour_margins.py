"""From the cosine of a pair to its margin over what its sides reach with others (Artetxe and Schwenk, 2019).

    score(x, y) = margin(cos(x, y), b(x, y)),   b(x, y) = (mean cosine of x with its k nearest
                                                           + mean cosine of y with its k nearest) / 2

with margin(a, b) = a / b (ratio), a - b (distance) or a (absolute).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phrasetool.bitext.nearest import Neighbours
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask

MARGINS = ("ratio", "distance", "absolute")
# A ratio to next to nothing says nothing: sentences that are near to none are no translations of each other.
_LOWEST = 0.05


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
