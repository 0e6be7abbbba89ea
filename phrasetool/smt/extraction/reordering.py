"""Lexicalised reordering: how likely a phrase pair continues in order, swaps, or does something else.

Tillmann (2004), Koehn et al. (2005); the word-based model `wbe-msd-bidirectional-fe` of Moses: orientations are told
from the alignment points at the corners of a pair, towards the previous and towards the next phrase in the target.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array

# Added to each count (Moses: phrase-extract/lexical-reordering, called with 0.5 by train-model.perl).
DEFAULT_SMOOTHING = 0.5


def reordering_probabilities(counts: Int64Array, smoothing: float = DEFAULT_SMOOTHING) -> npt.NDArray[np.float64]:
    """Probabilities of the orientations of N phrase pairs.

    Args:
        counts: int64, shape (N, 6): monotone, swap, other towards the previous phrase, then towards the next.
        smoothing: what is added to every count.

    Returns:
        float64, shape (N, 6); the first three of a row sum to 1, and so do the last three.
    """
    smoothed = counts.reshape(-1, 2, 3) + smoothing
    # Summed from the left, as Moses does.
    total = smoothed[:, :, 0] + smoothed[:, :, 1] + smoothed[:, :, 2]
    return (smoothed / total[:, :, None]).reshape(-1, 6)
