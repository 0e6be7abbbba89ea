"""The semantic criterion (Zhang et al. 2014, section 4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.scoring.scorer import Scores


@dataclass(frozen=True)
class BelowThreshold:
    """An entry fails when BOTH its similarities are below the threshold.

    An entry without an opinion (only unknown words on a side) never fails.

    Raises:
        ValueError: the threshold is not a number.
    """

    threshold: float

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise ValueError("the threshold is not a number")

    @property
    def name(self) -> str:
        """The key of this criterion in statistics."""
        return "below_threshold"

    def fails(self, scores: Scores) -> npt.NDArray[np.bool_]:
        """bool, shape (N,)."""
        return scores.opinion & (strength(scores) < self.threshold)


def mean_similarity(scores: Scores) -> npt.NDArray[np.float64]:
    """What ranks the entries of a source, shape (N,): the mean of both similarities."""
    similarities = scores.similarities.astype(np.float64)
    mean: npt.NDArray[np.float64] = (similarities[:, 0] + similarities[:, 1]) / 2
    return mean


def strength(scores: Scores) -> npt.NDArray[np.float64]:
    """The largest threshold an entry survives: the better of its similarities; infinite without an opinion."""
    best: npt.NDArray[np.float64] = scores.similarities.max(axis=1).astype(np.float64)
    best[~scores.opinion] = np.inf
    return best
