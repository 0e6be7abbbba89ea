"""Phrase probabilities from how often forced decoding used the entries of a table.

The idea is of Wuebker, Mauser and Ney, "Training Phrase Translation Models with Leaving-One-Out" (ACL 2010): phrases
are counted where they explain sentence pairs from which they were not extracted, instead of wherever they can be
extracted.  Most entries are never used, so the counts are smoothed towards the probabilities of the table with a
Dirichlet prior (MacKay and Peto, "A Hierarchical Dirichlet Language Model", 1995).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray

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
