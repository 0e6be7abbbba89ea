"""Probabilities of phrase pairs: from usage in forced decoding, and from similarities by a softmax.

**Usage in forced decoding.**  The idea is of Wuebker, Mauser and Ney, "Training Phrase Translation Models with
Leaving-One-Out" (ACL 2010): phrases are counted where they explain sentence pairs from which they were not extracted,
instead of wherever they can be extracted.  Most entries are never used, so the counts are smoothed towards the
probabilities of the table with a Dirichlet prior (MacKay and Peto, "A Hierarchical Dirichlet Language Model", 1995)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask

# A score of 0 would be -100 for the decoder.
SMALLEST_PROBABILITY = 1e-6


def forced_probabilities(
    counts: FloatArray,
    direct: npt.NDArray[np.floating],
    inverse: npt.NDArray[np.floating],
    prior: float = 1.0,
) -> npt.NDArray[np.float64]:
    """p(e|f) = (c(f,e) + k p_table(e|f)) / (c(f) + k), and p(f|e) likewise.

    An entry whose source was never used keeps the p(e|f) of the table.

    Args:
        counts: shape (N, 3): uses of the pair c(f,e), of its source c(f) and of its target c(e).
        direct: shape (N,), p(e|f) of the table.
        inverse: shape (N,), p(f|e) of the table.
        prior: k, how many uses the table's own probability is worth.

    Returns:
        float64, shape (N, 2): p(e|f), then p(f|e); at least 1e-6 and at most 1.

    Raises:
        ValueError: shapes do not fit, or the prior is not positive.
    """
    if counts.shape != (len(direct), 3) or direct.ndim != 1 or direct.shape != inverse.shape:
        raise ValueError(f"counts of shape {counts.shape} do not fit probabilities of {direct.shape}, {inverse.shape}")
    if not prior > 0:
        raise ValueError(f"the prior must be positive, not {prior}")
    pair, totals = counts[:, :1].astype(np.float64), counts[:, 1:].astype(np.float64)
    given = np.stack([direct, inverse], axis=1, dtype=np.float64)
    return np.clip((pair + prior * given) / (totals + prior), SMALLEST_PROBABILITY, 1.0)


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
