"""Logistic regression of shares on a few features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
_STEPS, _PRIOR = 50, 1e-3


def regression(rows: Doubles, shares: Doubles) -> Doubles:
    """The most likely weights by Newton's method, with a weak prior, so that there always are some.

    Args:
        rows: shape (N, n).
        shares: what is to be expected of each row, from 0 to 1, shape (N,).

    Returns:
        Shape (n + 1,): a weight for each feature, and what is added.
    """
    mean, scale = rows.mean(0), rows.std(0)
    scale = np.where(scale > 0, scale, 1)
    x = np.column_stack([(rows - mean) / scale, np.ones(len(rows))])
    weights = np.zeros(x.shape[1])
    ridge = _PRIOR * len(rows) * np.diag([*np.ones(rows.shape[1]), 1e-3])
    for _ in range(_STEPS):
        predicted = _sigmoid(x @ weights)
        gradient = x.T @ (shares - predicted) - ridge @ weights
        curvature = (x * (predicted * (1 - predicted))[:, None]).T @ x + ridge
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    own = weights[:-1] / scale
    return np.append(own, weights[-1] - own @ mean)


def expected(rows: Doubles, weights: Doubles) -> Doubles:
    """Return the expected shares of N rows, shape (N,), given the weights of `regression`."""
    return _sigmoid(rows @ weights[:-1] + weights[-1])


def _sigmoid(values: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
