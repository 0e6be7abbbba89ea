"""How large a table is at a threshold, without writing it: sweeps, and the threshold for a wanted size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_BINS = 1 << 21


class TooSmallError(ValueError):
    """The rule protects more entries than the wanted size allows."""

    @classmethod
    def of(cls, protected: int, entries: int, fraction: float) -> TooSmallError:
        """So many of the entries are protected, but only this share may stay."""
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

    Entries that no threshold removes (protected, or without an opinion) have infinite strength.  Counts at the
    thresholds given to the constructor are exact; a wanted size is met from below, to within the entries whose
    strengths are equal in six decimals.

    Attributes:
        survivors: int64, entries that each of the thresholds leaves.
        failing: int64, entries that each would remove if nothing were protected.
        entries: all of them.
        immortal: those of infinite strength.

    Args:
        thresholds: where exact counts are wanted.
    """

    def __init__(self, thresholds: Sequence[float] = ()) -> None:
        self.thresholds = list(thresholds)
        self.survivors = np.zeros(len(self.thresholds), np.int64)
        self.failing = np.zeros(len(self.thresholds), np.int64)
        self.entries = 0
        self.immortal = 0
        self._bins = np.zeros(_BINS + 1, np.int64)

    def add(self, strengths: npt.NDArray[np.float64], worth: npt.NDArray[np.floating] | None = None) -> None:
        """Count entries.

        Args:
            strengths: shape (N,), in [-1, 1] or infinite.
            worth: shape (N,), strengths without protection, for `failing`; as `strengths` if None.
        """
        worth = strengths if worth is None else worth
        mortal = strengths[np.isfinite(strengths)]
        self.entries += len(strengths)
        self.immortal += len(strengths) - len(mortal)
        for i, threshold in enumerate(self.thresholds):
            self.survivors[i] += int((strengths >= threshold).sum())
            self.failing[i] += int((worth < threshold).sum())
        bins = np.floor((mortal + 1) * (_BINS / 2)).astype(np.int64)
        np.add.at(self._bins, np.clip(bins, 0, _BINS), 1)

    def threshold_for(self, fraction: float) -> float:
        """The lowest threshold that leaves at most `fraction` of the entries.

        Raises:
            TooSmallError: even the highest threshold leaves more.
        """
        allowed = allowed_entries(fraction, self.entries)
        if self.immortal > allowed:
            raise TooSmallError.of(self.immortal, self.entries, fraction)
        # survivors_from[b]: entries that survive the threshold at the lower edge of bin b.
        survivors_from = self.immortal + np.cumsum(self._bins[::-1])[::-1]
        enough = np.flatnonzero(survivors_from <= allowed)
        first = int(enough[0]) if len(enough) else _BINS + 1
        return float(first * 2.0 / _BINS - 1.0) if first else -1.0
