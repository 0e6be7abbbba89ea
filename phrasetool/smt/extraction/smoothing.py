"""Smoothed probabilities of phrase pairs: discounted counts, usage in forced decoding, and softmax of similarities.

phi(t|s) = c*(s,t) / c(s) and phi(s|t) = c*(s,t) / c(t), where c* depends on the counts of counts.  Foster, Kuhn &
Johnson (2006) compare both methods; the Kneser-Ney discounts are from Chen & Goodman (1998).  The constants, the limits
and single precision are those of phrase-extract/consolidate-main.cpp.

**Usage in forced decoding.**  The idea is from Wuebker, Mauser and Ney, "Training Phrase Translation Models with
Leaving-One-Out" (ACL 2010): phrases are counted where they explain sentence pairs from which they were not extracted,
instead of wherever they can be extracted.  Most entries are never used, so the counts are smoothed towards the
probabilities of the table with a Dirichlet prior (MacKay and Peto, "A Hierarchical Dirichlet Language Model", 1995).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Mask

# Largest count for which the number of pairs is recorded.
COUNT_LIMIT = 10

_CAPS = (0.9, 1.9, 2.9)
# A score of 0 would become a log score of -100 in the decoder.
SMALLEST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class PairStatistics:
    """Numbers of distinct phrase pairs.

    Attributes:
        pairs: all of them.
        by_count: int64, shape (COUNT_LIMIT + 1,); by_count[c] were seen exactly c times (by_count[0] is unused).
    """

    pairs: int
    by_count: Int64Array

    @classmethod
    def of(cls, joint: Int64Array) -> PairStatistics:
        """Return the statistics of pairs with these joint counts."""
        return cls(len(joint), np.bincount(joint[joint <= COUNT_LIMIT], minlength=COUNT_LIMIT + 1))

    def __add__(self, other: PairStatistics) -> PairStatistics:
        return PairStatistics(self.pairs + other.pairs, self.by_count + other.by_count)


_Numbers = Int64Array | Int32Array | FloatArray


@dataclass(frozen=True)
class JointCounts:
    """The counts of N phrase pairs, each shape (N,); as in `consolidate`, they need not be integers.

    Attributes:
        joint: c(s,t), how often source and target were extracted together.
        source, target: c(s) and c(t), the sums over all pairs with this source or target.
        source_distinct, target_distinct: numbers of different targets of the source and of different sources of the
            target.
    """

    joint: _Numbers
    source: _Numbers
    target: _Numbers
    source_distinct: Int64Array | Int32Array
    target_distinct: Int64Array | Int32Array


# c* for phi(s|t) and c* for phi(t|s), float32, shape (N,).
Smoothing = Callable[[JointCounts], tuple[FloatArray, FloatArray]]


def unsmoothed(counts: JointCounts) -> tuple[FloatArray, FloatArray]:
    """Return the joint counts for relative frequencies: c* = c(s,t); see `Smoothing`."""
    joint = counts.joint.astype(np.float32)
    return joint, joint


class GoodTuring:
    """Good-Turing smoothing: c* = c d(c) with d(c) = (c+1)/c (N_{c+1} + 0.1)/(N_c + 0.1) for small counts.

    d is at most 1 and never decreases; it applies to counts from 1 to COUNT_LIMIT - 2.

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
    """Kneser-Ney smoothing: c* = c - D + the discounted mass x the share of the partner in distinct pairs.

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
    """Return a method by its name, a key of `METHODS`.

    Raises:
        ValueError: the method is unknown.
    """
    if name not in METHODS:
        raise ValueError(f"unknown smoothing {name}; expected one of {', '.join(METHODS)}")
    return METHODS[name](statistics)


def translation_probabilities(counts: JointCounts, smoothing: Smoothing) -> tuple[FloatArray, FloatArray]:
    """Return phi(s|t) and phi(t|s), float32, shape (N,)."""
    for_target, for_source = smoothing(counts)
    return for_target / counts.target.astype(np.float32), for_source / counts.source.astype(np.float32)


def forced_probabilities(
    counts: FloatArray,
    direct: npt.NDArray[np.floating],
    inverse: npt.NDArray[np.floating],
    prior: float = 1.0,
) -> npt.NDArray[np.float64]:
    """Return p(e|f) = (c(f,e) + k p_table(e|f)) / (c(f) + k), and p(f|e) likewise.

    An entry whose source was never used keeps the p(e|f) of the table.

    Args:
        counts: shape (N, 3): uses of the pair c(f,e), of its source c(f) and of its target c(e).
        direct: shape (N,), p(e|f) of the table.
        inverse: shape (N,), p(f|e) of the table.
        prior: k, the number of uses that the table's probability counts as.

    Returns:
        float64, shape (N, 2): p(e|f), then p(f|e); at least 1e-6 and at most 1.

    Raises:
        ValueError: the shapes do not match, or the prior is not positive.
    """
    if counts.shape != (len(direct), 3) or direct.ndim != 1 or direct.shape != inverse.shape:
        raise ValueError(
            f"counts of shape {counts.shape} do not match probabilities of {direct.shape}, {inverse.shape}"
        )
    if not prior > 0:
        raise ValueError(f"the prior must be positive, not {prior}")
    pair, totals = counts[:, :1].astype(np.float64), counts[:, 1:].astype(np.float64)
    table = np.stack([direct, inverse], axis=1, dtype=np.float64)
    return np.clip((pair + prior * table) / (totals + prior), SMALLEST_PROBABILITY, 1.0)


@exact_kernel
def _softmax(values: DoubleArray, group_offsets: Int64Array, counted: Mask, out: DoubleArray) -> None:
    for group in range(len(group_offsets) - 1):
        first, last = group_offsets[group], group_offsets[group + 1]
        for c in range(values.shape[1]):
            largest = -np.inf
            for i in range(first, last):
                if counted[i, c]:
                    largest = max(largest, values[i, c])
            total = 0.0
            for i in range(first, last):
                if counted[i, c]:
                    total += np.exp(values[i, c] - largest)
            for i in range(first, last):
                if counted[i, c]:
                    out[i, c] = np.exp(values[i, c] - largest) / total


def candidate_probabilities(values: FloatArray, group_offsets: Int64Array, malformed: Mask) -> DoubleArray:
    """Return p of each entry among those of its source: exp(v) / sum of exp(v') over all of them, itself included.

    Args:
        values: float32, shape (N, C): similarities, or logarithms of probabilities; NaN where there is no score.
        group_offsets: int64, shape (G + 1,), the first entry of each source.
        malformed: bool, shape (N,), lines that are not entries.

    Returns:
        float64, shape (N, C), in [0, 1]; 1 where there is no score.
    """
    values = values.astype(np.float64)
    counted = np.isfinite(values) & ~malformed[:, None]
    probabilities = np.ones(values.shape)
    _softmax(values, group_offsets, counted, probabilities)
    return probabilities
