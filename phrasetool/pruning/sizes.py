"""Sizes of a pruned table at thresholds, without writing it, and thresholds for a requested size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, FloatArray, Mask

_BINS = 1 << 21


class TooSmallError(ValueError):
    """The rule protects more entries than the requested size allows."""

    @classmethod
    def of(cls, protected: int, entries: int, fraction: float) -> TooSmallError:
        """Describe a table of which `protected` entries are protected, although only a fraction may be kept."""
        return cls(
            f"{protected:,} of {entries:,} entries ({protected / max(entries, 1):.1%}) are kept at any threshold, more "
            f"than the requested {fraction:.1%}"
        )


def allowed_entries(fraction: float, entries: int) -> int:
    """Return the number of entries in a share of them, rounded down."""
    # 0.29 of 100 is 29, although 0.29 * 100 is slightly below 29 in floating point.
    return int(np.floor(fraction * entries * (1 + 1e-12)))


class SizeCurve:
    """Histogram of the strengths of entries, the largest thresholds at which they are kept, in bounded memory.

    Entries that no threshold removes (protected, or without a score) have infinite strength.  Counts at the
    thresholds given to the constructor are exact.  `threshold_for` never exceeds the requested size; it may fall short
    by the entries whose strengths are equal in six decimals.

    Attributes:
        survivors: int64, number of entries kept at each threshold.
        failing: int64, number of entries that each threshold would remove if nothing were protected.
        entries: total number of entries.
        always_kept: number of entries of infinite strength.

    Args:
        thresholds: thresholds at which exact counts are required.
    """

    def __init__(self, thresholds: Sequence[float] = ()) -> None:
        self.thresholds = list(thresholds)
        self.survivors = np.zeros(len(self.thresholds), np.int64)
        self.failing = np.zeros(len(self.thresholds), np.int64)
        self.entries = 0
        self.always_kept = 0
        self._bins = np.zeros(_BINS + 1, np.int64)

    def add(self, strengths: npt.NDArray[np.floating], scores: npt.NDArray[np.floating] | None = None) -> None:
        """Count entries; thresholds are compared in the precision of the strengths.

        Args:
            strengths: shape (N,), in [-1, 1] or infinite.
            scores: shape (N,), strengths without protection, for `failing`; None: equal to `strengths`.
        """
        scores = strengths if scores is None else scores
        finite = strengths[np.isfinite(strengths)]
        self.entries += len(strengths)
        self.always_kept += len(strengths) - len(finite)
        for i, threshold in enumerate(self.thresholds):
            self.survivors[i] += int((strengths >= strengths.dtype.type(threshold)).sum())
            self.failing[i] += int((scores < scores.dtype.type(threshold)).sum())
        # The edges of bins are multiples of 2^-20, which single precision represents exactly.
        bins = np.floor((finite.astype(np.float64) + 1) * (_BINS / 2)).astype(np.int64)
        np.add.at(self._bins, np.clip(bins, 0, _BINS), 1)

    def threshold_for(self, fraction: float) -> float:
        """Return the lowest threshold that keeps at most `fraction` of the entries.

        Raises:
            TooSmallError: even the highest threshold keeps more.
        """
        allowed = allowed_entries(fraction, self.entries)
        if self.always_kept > allowed:
            raise TooSmallError.of(self.always_kept, self.entries, fraction)
        # survivors_from[b]: number of entries kept at the lower edge of bin b.
        survivors_from = self.always_kept + np.cumsum(self._bins[::-1])[::-1]
        enough = np.flatnonzero(survivors_from <= allowed)
        first = int(enough[0]) if len(enough) else _BINS + 1
        return float(first * 2.0 / _BINS - 1.0) if first else -1.0


# Part of a table: the row of its first entry, the scores of its entries, not NaN, and a mask of the protected ones.
ScoredPart = tuple[int, FloatArray | DoubleArray, Mask]
_DIGIT = 16


@dataclass(frozen=True)
class SizeLimit:
    """Limit of the best unprotected entries of a table; ties are broken by table order.

    Attributes:
        score: the score of the last of the best entries; infinite if there are none.
        last: its row in the table, from 0; entries with the same score up to this row are among the best.
    """

    score: float
    last: int

    @classmethod
    def of(cls, parts: Callable[[], Iterable[ScoredPart]], count: int) -> SizeLimit:
        """Find the last of the `count` best unprotected entries, in memory that does not grow with the table.

        Args:
            parts: returns all parts of the table, in order; called several times.
            count: number of entries, at least 0; limited to the number of unprotected entries.
        """
        count = min(count, sum(int(np.count_nonzero(~protected)) for _, _, protected in parts()))
        if count <= 0:
            return cls(np.inf, -1)
        # Radix selection: from the most significant digit, find the digit of the last of the best entries, and count
        # the entries with larger digits.
        prefix, above, digits = 0, 0, 1
        while True:
            counts = np.zeros(1 << _DIGIT, np.int64)
            for _, scores, protected in parts():
                keys = _ordered(scores[~protected])
                shift = 8 * keys.itemsize - digits * _DIGIT
                if digits > 1:
                    keys = keys[keys >> keys.dtype.type(shift + _DIGIT) == keys.dtype.type(prefix)]
                counts += np.bincount(
                    (keys >> keys.dtype.type(shift)).astype(np.int64) & ((1 << _DIGIT) - 1), minlength=1 << _DIGIT
                )
            larger = np.cumsum(counts[::-1])
            digit = int(np.searchsorted(larger, count - above))
            above += int(larger[digit - 1]) if digit else 0
            prefix = prefix << _DIGIT | ((1 << _DIGIT) - 1 - digit)
            if shift == 0:
                break
            digits += 1
        return cls._among_ties(parts, prefix, count - above)

    @classmethod
    def _among_ties(cls, parts: Callable[[], Iterable[ScoredPart]], key: int, count: int) -> SizeLimit:
        """Find the last of the best entries, of which `count` have this key."""
        for first, scores, protected in parts():
            same = np.flatnonzero((_ordered(scores) == key) & ~protected)
            if len(same) >= count:
                entry = int(same[count - 1])
                return cls(float(scores[entry]), first + entry)
            count -= len(same)
        raise ValueError("the input changed between passes")

    def fails(self, scores: FloatArray | DoubleArray, protected: Mask, first: int = 0) -> Mask:
        """Return the entries that are not among the best; a protected entry fails if its score is below the limit.

        Args:
            scores: shape (N,), not NaN.
            protected: bool, shape (N,).
            first: row of the first of these entries in the table.

        Returns:
            bool, shape (N,).
        """
        limit = scores.dtype.type(self.score)
        better: Mask = scores > limit
        ties = scores == limit
        entered = better | (ties & (np.arange(first, first + len(scores)) <= self.last))
        failed: Mask = np.where(protected, ~(better | ties), ~entered)
        return failed


def _ordered(scores: FloatArray | DoubleArray) -> npt.NDArray[np.unsignedinteger]:
    """Return unsigned integers that sort like the scores, which are not NaN."""
    # Adding 0 turns -0 into +0.
    bits = np.ascontiguousarray(scores + scores.dtype.type(0)).view(f"u{scores.itemsize}")
    top = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    return np.where(bits & top, ~bits, bits | top)
