"""How large a table is at a threshold, without writing it: sweeps, and the threshold for a wanted size."""

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
            f"than the wanted {fraction:.1%}"
        )


def allowed_entries(fraction: float, entries: int) -> int:
    """How many entries a share of them is, rounded down."""
    # 0.29 of 100 is 29, although 0.29 * 100 is a little less in binary.
    return int(np.floor(fraction * entries * (1 + 1e-12)))


class SizeCurve:
    """Counts entries by the largest threshold they survive, in bounded memory.

    Entries that no threshold removes (protected, or without a score) have infinite strength.  Counts at the
    thresholds given to the constructor are exact; a wanted size is met from below, to within the entries whose
    strengths are equal in six decimals.

    Attributes:
        survivors: int64, entries that each of the thresholds leaves.
        failing: int64, entries that each would remove if nothing were protected.
        entries: all of them.
        always_kept: those of infinite strength.

    Args:
        thresholds: at which exact counts are required.
    """

    def __init__(self, thresholds: Sequence[float] = ()) -> None:
        self.thresholds = list(thresholds)
        self.survivors = np.zeros(len(self.thresholds), np.int64)
        self.failing = np.zeros(len(self.thresholds), np.int64)
        self.entries = 0
        self.always_kept = 0
        self._bins = np.zeros(_BINS + 1, np.int64)

    def add(self, strengths: npt.NDArray[np.float64], scores: npt.NDArray[np.floating] | None = None) -> None:
        """Count entries.

        Args:
            strengths: shape (N,), in [-1, 1] or infinite.
            scores: shape (N,), strengths without protection, for `failing`; as `strengths` if None.
        """
        scores = strengths if scores is None else scores
        mortal = strengths[np.isfinite(strengths)]
        self.entries += len(strengths)
        self.always_kept += len(strengths) - len(mortal)
        for i, threshold in enumerate(self.thresholds):
            self.survivors[i] += int((strengths >= threshold).sum())
            self.failing[i] += int((scores < threshold).sum())
        bins = np.floor((mortal + 1) * (_BINS / 2)).astype(np.int64)
        np.add.at(self._bins, np.clip(bins, 0, _BINS), 1)

    def threshold_for(self, fraction: float) -> float:
        """The lowest threshold that leaves at most `fraction` of the entries.

        Raises:
            TooSmallError: even the highest threshold leaves more.
        """
        allowed = allowed_entries(fraction, self.entries)
        if self.always_kept > allowed:
            raise TooSmallError.of(self.always_kept, self.entries, fraction)
        # survivors_from[b]: entries that survive the threshold at the lower edge of bin b.
        survivors_from = self.always_kept + np.cumsum(self._bins[::-1])[::-1]
        enough = np.flatnonzero(survivors_from <= allowed)
        first = int(enough[0]) if len(enough) else _BINS + 1
        return float(first * 2.0 / _BINS - 1.0) if first else -1.0


# Part of a table: its first entry's number, the scores of its entries, not NaN, and which of them are protected.
ScoredPart = tuple[int, FloatArray | DoubleArray, Mask]
_DIGIT = 16


@dataclass(frozen=True)
class SizeLimit:
    """The border of the best unprotected entries of a table, ties by table order.

    Attributes:
        score: of the last one of them; infinite if there is none.
        last: its number in the table, from 0; of those with the same score, the ones up to it belong to the best.
    """

    score: float
    last: int

    @classmethod
    def of(cls, parts: Callable[[], Iterable[ScoredPart]], count: int) -> SizeLimit:
        """Find the score of the last of the `count` best entries.  Memory does not grow with the table.

        Args:
            parts: gives all parts of the table, in order; called several times.
            count: at least 0; all of the unprotected entries if they are fewer.
        """
        count = min(count, sum(int(np.count_nonzero(~protected)) for _, _, protected in parts()))
        if count <= 0:
            return cls(np.inf, -1)
        # From the largest digit to the smallest: which one has the last of the best, and how many have a larger one.
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
            place = int(np.searchsorted(larger, count - above))
            above += int(larger[place - 1]) if place else 0
            prefix = prefix << _DIGIT | ((1 << _DIGIT) - 1 - place)
            if shift == 0:
                break
            digits += 1
        return cls._among_ties(parts, prefix, count - above)

    @classmethod
    def _among_ties(cls, parts: Callable[[], Iterable[ScoredPart]], key: int, count: int) -> SizeLimit:
        """Find the last of the best, of which `count` have this key."""
        for first, scores, protected in parts():
            same = np.flatnonzero((_ordered(scores) == key) & ~protected)
            if len(same) >= count:
                entry = int(same[count - 1])
                return cls(float(scores[entry]), first + entry)
            count -= len(same)
        raise ValueError("the parts are others than before")

    def fails(self, scores: FloatArray | DoubleArray, protected: Mask, first: int = 0) -> Mask:
        """bool, shape (N,): what does not belong to the best; a protected entry fails if its score is lower.

        Args:
            scores: shape (N,), not NaN.
            protected: bool, shape (N,).
            first: the number of the first of these entries in the table.
        """
        limit = scores.dtype.type(self.score)
        better: Mask = scores > limit
        ties = scores == limit
        entered = better | (ties & (np.arange(first, first + len(scores)) <= self.last))
        failed: Mask = np.where(protected, ~(better | ties), ~entered)
        return failed


def _ordered(scores: FloatArray | DoubleArray) -> npt.NDArray[np.unsignedinteger]:
    """Unsigned numbers in the order of those, which are not NaN."""
    # No zero is negative then.
    bits = np.ascontiguousarray(scores + scores.dtype.type(0)).view(f"u{scores.itemsize}")
    top = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    return np.where(bits & top, ~bits, bits | top)
