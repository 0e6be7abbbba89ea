"""Sentences with one sequence of parts of speech, and whether those that are near by their vectors are among them.

The paper (Liu et al. 2019, section 4.1) holds out groups of at least six sentences; accuracy@k is the share of the k
nearest sentences by the cosine that are of the same group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int64Array

LEAST = 6
NO_GROUP = -1
# Rows of cosines at a time.
_ROWS = 256


def group_numbers(sequences: Sequence[Hashable], least: int = LEAST) -> Int64Array:
    """The group of each sequence, int64, shape (N,); `NO_GROUP` where fewer than `least` are alike."""
    known: dict[Hashable, int] = {}
    numbers = np.array([known.setdefault(one, len(known)) for one in sequences], np.int64)
    counts = np.bincount(numbers, minlength=len(known))
    found: Int64Array = np.where(counts[numbers] >= least, numbers, NO_GROUP) if len(numbers) else numbers
    return found


def neighbour_accuracies(
    vectors: FloatArray, groups: Int64Array, counts: Sequence[int] = (1, 5), sentences: Int64Array | None = None,
    seed: int = 1,
) -> list[float]:  # fmt: skip
    """The accuracy@k of N texts for each k; see `neighbour_shares`."""
    return [
        float(one) for one in neighbour_shares(vectors, groups, counts, sentences, seed).sum(0) / max(len(groups), 1)
    ]


def neighbour_shares(
    vectors: FloatArray, groups: Int64Array, counts: Sequence[int] = (1, 5), sentences: Int64Array | None = None,
    seed: int = 1,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Which share of the k nearest of each of N texts is of its group, for each k.

    Args:
        vectors: shape (N, n); zeros are as far from all as can be.
        groups: of each text, shape (N,).
        counts: k of each figure.
        sentences: of which sentence each text is a part; those of one sentence are no neighbours.
        seed: texts that are equally near come in an order that it draws.

    Returns:
        Shape (N, len(counts)), in the order of the texts.
    """
    order = np.random.default_rng(seed).permutation(len(vectors))
    unit, groups = unit_vectors(vectors[order]), groups[order]
    parts = np.arange(len(order)) if sentences is None else sentences[order]
    found = np.zeros((len(order), len(counts)))
    for first in range(0, len(order), _ROWS):
        rows = slice(first, first + _ROWS)
        cosines = unit[rows] @ unit.T
        cosines[parts[rows, None] == parts[None]] = -np.inf
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : max(counts)]
        same = groups[nearest] == groups[rows, None]
        found[order[rows]] = np.stack([same[:, :count].mean(1) for count in counts], axis=1)
    return found


def chance_accuracy(groups: Int64Array) -> float:
    """The accuracy@k of neighbours that are drawn."""
    sizes = np.unique(groups, return_counts=True)[1]
    return float((sizes * (sizes - 1)).sum() / max(len(groups) * (len(groups) - 1), 1))


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """The same vectors with length 1, zeros as they are."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: FloatArray = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
    return found
