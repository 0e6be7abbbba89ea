"""Whether vectors are as far apart as the sequences of parts of speech (Liu et al. 2019, section 4.3).

FD = ||L - minmax(D)||_F / n for n sentences: L holds edit distances over the length of the longer sequence, D distances
by the cosine.  The paper calls L the complement of the distance; then vectors that tell syntax best score worst.
Random vectors score as well as good ones, for all of their distances are about the same; the rank correlation of L and
D is not deceived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from phrasetool.phrases import DoubleArray, FloatArray, Int64Array
from phrasetool.syntax.tag_groups import unit_vectors


@dataclass(frozen=True)
class Dissimilarity:
    """Of some sentences.

    Attributes:
        fd: functional dissimilarity, the lower the better.
        rho: Spearman's rank correlation of both distances over all pairs, the higher the better; 0 if one is constant.
    """

    fd: float
    rho: float


def functional_dissimilarity(vectors: FloatArray, edits: DoubleArray, literal: bool = False) -> Dissimilarity:
    """Compare distances.

    Args:
        vectors: shape (N, n), of two sentences at least.
        edits: of `edit_distances`, shape (N, N).
        literal: take L as the paper defines it, the complement of the distance.
    """
    unit = unit_vectors(vectors).astype(np.float64)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, 0)
    least, span = distances.min(), np.ptp(distances)
    near = (distances - least) / (span if span > 0 else 1)
    wanted = 1 - edits if literal else edits
    upper = np.triu_indices(len(edits), 1)
    rho = rank_correlation(edits[upper], distances[upper])
    return Dissimilarity(float(np.linalg.norm(wanted - near) / len(edits)), rho)


def edit_distances(sequences: Sequence[Sequence[int]]) -> DoubleArray:
    """Levenshtein's distances of N sequences over the length of the longer one, float64, shape (N, N)."""
    texts = ["".join(map(chr, one)) for one in sequences]
    found: DoubleArray = cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return found


def rank_correlation(first: DoubleArray, second: DoubleArray) -> float:
    """Spearman's rho of N pairs of numbers; equal ones share their ranks.  0 where one side is constant."""
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (first, second)]
    norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else 0.0


def _ranks(values: DoubleArray) -> DoubleArray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    firsts: Int64Array = np.cumsum(counts) - counts
    found: DoubleArray = (firsts + (counts - 1) / 2)[places]
    return found
