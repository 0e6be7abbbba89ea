"""Lengths and positions of self-attention; separate from the layers, because scoring needs them without PyTorch."""

from __future__ import annotations

import numpy as np

from phrasetool.errors import LengthError
from phrasetool.phrases import FloatArray, Int64Array

# Maximum number of words of a phrase or sentence; the memory of attention grows with its square.
LONGEST = 511
# Added to the variance by layer normalisation.
NORM_EPSILON = 1e-5


def check_lengths(lengths: Int64Array) -> None:
    """Check that phrases or sentences are not too long to encode.

    Args:
        lengths: number of words of each text.

    Raises:
        LengthError: a text has more words than `LONGEST`.
    """
    longest = int(lengths.max(initial=0))
    if longest > LONGEST:
        raise LengthError(f"a text of {longest} words is longer than the {LONGEST} that the model can encode")


def positions(count: int, word_units: int) -> FloatArray:
    """Return the sinusoidal positions of the words 1 .. count (Eq. 6-7); float32, shape (count, word_units)."""
    t = np.arange(1, count + 1)[:, None]
    even = np.arange(0, word_units, 2)
    angles = t / 10000 ** (even / word_units)
    table = np.empty((count, word_units))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : word_units // 2])
    return table.astype(np.float32)
