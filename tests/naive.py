"""The slow, obvious version of every kernel: plain Python, one thing at a time, no cleverness."""

from __future__ import annotations

import math

import numpy as np


def rae(phrase, parameters):
    """Vector, E_rec, and the merges (position at each step) of one phrase, in float64."""
    p = {name: array.astype(np.float64) for name, array in parameters.arrays().items()}
    n = parameters.dimension
    items = [p["word_vectors"][word] for word in phrase]
    if not items:
        return np.zeros(n), 0.0, []
    total, merges = 0.0, []
    while len(items) > 1:
        best = None
        for j in range(len(items) - 1):
            children = np.concatenate([items[j], items[j + 1]])
            parent = np.tanh(p["compose"] @ children + p["compose_bias"])
            again = np.tanh(p["reconstruct"] @ parent + p["reconstruct_bias"])
            error = 0.5 * float(((children - again) ** 2).sum())
            if best is None or error < best[0]:
                best = (error, j, parent)
        error, j, parent = best
        items[j : j + 2] = [parent]
        merges.append(j)
        total += error
    return items[0], total, merges


def transform(vector, parameters):
    """The phrase vector in the other language's space."""
    return np.tanh(parameters.transform.astype(np.float64) @ vector + parameters.transform_bias.astype(np.float64))


def cosine(a, b):
    """Cosine; 0 where a vector is zero."""
    norm = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(a @ b) / norm if norm > 0 else 0.0
