"""Similarities as probabilities: a softmax over the candidates of each source."""

from __future__ import annotations

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask


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


def candidate_probabilities(values: FloatArray, group_offsets: Int64Array, faulty: Mask) -> DoubleArray:
    """p of each entry among those of its source: exp(v) / sum of exp(v') over all of them, the entry included.

    Args:
        values: float32, shape (N, C): similarities, or logarithms of probabilities; NaN where nothing is said.
        group_offsets: int64, shape (G + 1,), the first entry of each source.
        faulty: bool, shape (N,), lines that are no entries.

    Returns:
        float64, shape (N, C), in [0, 1]; 1 where nothing is said.
    """
    values = values.astype(np.float64)
    counted = np.isfinite(values) & ~faulty[:, None]
    found = np.ones(values.shape)
    _softmax(values, group_offsets, counted, found)
    return found
