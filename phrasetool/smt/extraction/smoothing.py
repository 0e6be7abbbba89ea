"""Discounted joint counts for phrase translation probabilities, as Moses' `consolidate` computes them.

phi(t|s) = c*(s,t) / c(s) and phi(s|t) = c*(s,t) / c(t), where c* depends on how many pairs were seen how often.
Foster, Kuhn & Johnson (2006) compare both methods; Chen & Goodman (1998) for the Kneser-Ney discounts.  The
constants, the limits and single precision are those of phrase-extract/consolidate-main.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import FloatArray, Int32Array, Int64Array

# Pairs are counted by count up to here.
COUNT_LIMIT = 10

_CAPS = (0.9, 1.9, 2.9)


@dataclass(frozen=True)
class PairStatistics:
    """How many distinct phrase pairs there are.

    Attributes:
        pairs: all of them.
        by_count: int64, shape (COUNT_LIMIT + 1,); by_count[c] were seen exactly c times (by_count[0] is unused).
    """

    pairs: int
    by_count: Int64Array

    @classmethod
    def of(cls, joint: Int64Array) -> PairStatistics:
        """Of pairs with these joint counts."""
        return cls(len(joint), np.bincount(joint[joint <= COUNT_LIMIT], minlength=COUNT_LIMIT + 1))

    def __add__(self, other: PairStatistics) -> PairStatistics:
        return PairStatistics(self.pairs + other.pairs, self.by_count + other.by_count)


_Numbers = Int64Array | Int32Array | FloatArray


@dataclass(frozen=True)
class JointCounts:
    """The counts of N phrase pairs, each shape (N,); as `consolidate`'s, they need not be whole numbers.

    Attributes:
        joint: c(s,t), how often source and target were extracted together.
        source, target: c(s) and c(t), the sums over all pairs with this source or target.
        source_distinct, target_distinct: how many different targets the source has, sources the target has.
    """

    joint: _Numbers
    source: _Numbers
    target: _Numbers
    source_distinct: Int64Array | Int32Array
    target_distinct: Int64Array | Int32Array


# c* for phi(s|t) and c* for phi(t|s), float32, shape (N,).
Smoothing = Callable[[JointCounts], tuple[FloatArray, FloatArray]]


def unsmoothed(counts: JointCounts) -> tuple[FloatArray, FloatArray]:
    """Relative frequencies: c* = c(s,t); see `Smoothing`."""
    joint = counts.joint.astype(np.float32)
    return joint, joint


class GoodTuring:
    """c* = c d(c) with d(c) = (c+1)/c (N_{c+1} + 0.1)/(N_c + 0.1) for small counts.

    d is at most 1 and never falls; it applies to counts from 1 to COUNT_LIMIT - 2.

    Args:
        statistics: of all pairs.
    """

    def __init__(self, statistics: PairStatistics) -> None:
        number = statistics.by_count.astype(np.float32).astype(np.float64)
        self.discounts: FloatArray = np.ones(COUNT_LIMIT - 1, np.float32)
        lowest = np.float32(0.01)
        for count in range(1, COUNT_LIMIT - 1):
            step = np.float64(np.float32(count + 1) / np.float32(count))
            discount = np.float32(step * ((number[count + 1] + 0.1) / (number[count] + 0.1)))
            lowest = max(min(discount, np.float32(1)), lowest)
            self.discounts[count] = lowest

    def __call__(self, counts: JointCounts) -> tuple[FloatArray, FloatArray]:
        """Return the discounted joint counts, one array for both directions."""
        joint = counts.joint.astype(np.float32)
        count = np.ceil(np.minimum(joint, COUNT_LIMIT)).astype(np.int64)
        low = count < COUNT_LIMIT - 1
        joint[low] *= self.discounts[count[low]]
        return joint, joint


class KneserNey:
    """c* = c - D + the mass taken away x the share of the partner in distinct pairs.

    D depends on whether the pair was seen once, twice or more often.

    Args:
        statistics: of all pairs.
    """

    def __init__(self, statistics: PairStatistics) -> None:
        self._pairs = np.float32(statistics.pairs)
        number = statistics.by_count.astype(np.float32)
        share = number[1] / max(number[1] + 2 * number[2], np.float32(1))
        self.discounts: FloatArray = np.empty(3, np.float32)
        for k, cap in enumerate(_CAPS, 1):
            # Without pairs of a count (tiny bitexts) the formula is undefined; the cap is used instead.
            known = number[k] > 0
            value = k - (k + 1) * share * number[k + 1] / number[k] if known else np.float32(cap)
            self.discounts[k - 1] = min(value, np.float32(cap))

    def __call__(self, counts: JointCounts) -> tuple[FloatArray, FloatArray]:
        """Return the smoothed joint counts for p(source|target) and p(target|source)."""
        joint = counts.joint.astype(np.float32)
        discount = self.discounts[np.clip(counts.joint, 1, 3).astype(np.int64) - 1]
        discount = np.where(discount > joint, (joint.astype(np.float64) - 0.01).astype(np.float32), discount)
        sides = []
        for total, distinct, partners in (
            (counts.target, counts.target_distinct, counts.source_distinct),
            (counts.source, counts.source_distinct, counts.target_distinct),
        ):
            floats = total.astype(np.float32)
            mass = discount * distinct.astype(np.float32) / floats
            share = partners.astype(np.float32) / self._pairs
            sides.append(joint - discount + floats * mass * share)
        return sides[0], sides[1]


METHODS: dict[str, Callable[[PairStatistics], Smoothing]] = {
    "none": lambda statistics: unsmoothed,
    "good-turing": GoodTuring,
    "kneser-ney": KneserNey,
}


def smoothing_of(name: str, statistics: PairStatistics) -> Smoothing:
    """A method by its name, a key of `METHODS`.

    Raises:
        ValueError: there is no such method.
    """
    if name not in METHODS:
        raise ValueError(f"no smoothing is called {name}; there are {', '.join(METHODS)}")
    return METHODS[name](statistics)


def translation_probabilities(counts: JointCounts, smoothing: Smoothing) -> tuple[FloatArray, FloatArray]:
    """phi(s|t) and phi(t|s), float32, shape (N,)."""
    for_target, for_source = smoothing(counts)
    return for_target / counts.target.astype(np.float32), for_source / counts.source.astype(np.float32)
