"""Pairwise ranked optimisation: Hopkins and May, Tuning as Ranking (EMNLP 2011).

Pairs of candidates whose BLEU+1 differs are drawn from every sentence, and a linear classifier learns which of the two
is the better one from the difference of their features.  BLEU+1 is taken with a smoothed brevity penalty: without,
translations become too short (Nakov, Guzman and Vogel, Optimizing for Sentence-Level BLEU+1 Yields Short Translations,
COLING 2012).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.smt.evaluation.bleu import sentence_bleu_plus_one
from phrasetool.smt.tuning.candidates import CandidatePool, Weights, normalised_as, normalised_start

# Newton's method takes few steps however the features are scaled, but its matrix has the square of their number.
_MOST_FOR_NEWTON = 300


def optimise(
    pool: CandidatePool,
    start_weights: npt.ArrayLike,
    seed: int,
    *,
    pairs: int = 5000,
    kept: int = 50,
    minimum_difference: float = 5.0,
    strength: float = 1.0,
    interpolation: float = 0.5,
) -> Weights:
    """Weights that rank the candidates of a sentence as BLEU+1 does.

    Args:
        pool: candidates of all decoder runs so far.
        start_weights: shape (F,), the weights before, not all 0; only their ratios matter.
        seed: of the pairs drawn.
        pairs: Gamma, pairs drawn from each sentence.
        kept: Xi, pairs kept of them: those that differ most.
        minimum_difference: in BLEU+1 points; pairs that differ less are not kept.
        strength: inverse of the weight of the L2 penalty (C of scikit-learn; 1 / lambda of MegaM).
        interpolation: Psi, the share of what is learnt in the result; the rest is the weights before (0.1 in the paper,
            which needs some three times as many decoder runs).

    Returns:
        float64, shape (F,); the sum of absolute values is 1.  Features that never vary keep their share of it.

    Raises:
        ValueError: the start is all 0, has NaN or infinity, or is of another length.
    """
    start = normalised_start(pool, start_weights)
    better, worse = sample_pairs(pool, np.random.default_rng(seed), pairs, kept, minimum_difference)
    differences = pool.features[better].astype(np.float64) - pool.features[worse]
    learnt = _separate(differences, strength)
    if not learnt.any():
        return start
    learnt = normalised_as(learnt, start, pool)
    mixed = interpolation * learnt + (1 - interpolation) * start
    return normalised_as(mixed, start, pool) if mixed.any() else learnt


def sample_pairs(
    pool: CandidatePool, rng: np.random.Generator, pairs: int, kept: int, minimum_difference: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw pairs of candidates of one sentence (section 4 of the paper).

    Args:
        pool: candidates to draw from.
        rng: source of randomness.
        pairs, kept, minimum_difference: see `optimise`.

    Returns:
        The better and the worse candidate of each pair, as positions in the pool: int64, shape (P,) each.
    """
    scores = sentence_bleu_plus_one(pool.statistics, smooth_brevity=True)
    better, worse = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first, end in zip(pool.offsets[:-1].tolist(), pool.offsets[1:].tolist(), strict=True):
        if end - first < 2:
            continue
        one, other = rng.integers(first, end, (2, pairs))
        difference = scores[one] - scores[other]
        far = np.flatnonzero(np.abs(difference) > minimum_difference)
        far = far[np.argsort(-np.abs(difference[far]), kind="stable")[:kept]]
        up = difference[far] > 0
        better.append(np.where(up, one[far], other[far]))
        worse.append(np.where(up, other[far], one[far]))
    return np.concatenate(better), np.concatenate(worse)


def _separate(differences: npt.NDArray[np.float64], strength: float) -> Weights:
    """Weights of a logistic regression that tells differences from their negatives; all 0 if there is none."""
    count, features = differences.shape
    if not differences.any():
        return np.zeros(features)
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # A difference and its negative have the same loss, so one of the two with twice the weight stands for both.
    signs = np.where(np.arange(count) % 2, 1.0, -1.0)
    if count == 1:
        differences, signs = np.repeat(differences, 2, 0), np.array([1.0, -1.0])
        strength /= 2
    solver = "newton-cholesky" if features <= _MOST_FOR_NEWTON else "lbfgs"
    classifier = LogisticRegression(C=2 * strength, fit_intercept=False, solver=solver, tol=1e-7, max_iter=1000)
    # The order of sums in a matrix product must not depend on the number of processors.
    with threadpool_limits(1):
        classifier.fit(differences * signs[:, None], signs)
    return np.asarray(classifier.coef_[0], np.float64)
