"""Scores as the decoder sees them: natural logarithms."""

from __future__ import annotations

import numpy as np

from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array
from phrasetool.smt.decoder.features import LOWEST_SCORE


def log_scores(name: str, values: DoubleArray, entries: Int64Array) -> FloatArray:
    """The scores of N entries as a model sees them, by Moses' TransformScore and FloorScore.

    Args:
        name: the table, as messages call it.
        values: float64, shape (N, C), as written.
        entries: int64, shape (N,), 0-based numbers of the entries in the table.

    Returns:
        float32, shape (N, C), natural logarithms, at least -100.

    Raises:
        DataError: a score is negative or infinite.
    """
    for wrong, message in (
        (values < 0, "a score is negative; Moses takes its logarithm"),
        (values > np.finfo(np.float32).max, "a score is infinite"),
    ):
        if wrong.any():
            raise DataError(name, message, int(entries[np.flatnonzero(wrong.any(axis=1))[0]]) + 1)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values.astype(np.float32)), np.float32(LOWEST_SCORE))
