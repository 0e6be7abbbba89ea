"""Optimisers of feature weights on n-best lists: batch MIRA and pairwise ranked optimisation (PRO).

**MIRA**: Cherry and Foster, Batch Tuning Strategies for Statistical Machine Translation (NAACL 2012).  The default
values, the BLEU with a decaying background corpus and the choice of the best epoch are those of kbmira in Moses.  As in
the paper, weights are averaged over sentences (kbmira: over sentences that changed them).

**PRO**: Hopkins and May, Tuning as Ranking (EMNLP 2011).  Pairs of candidates whose BLEU+1 differs are drawn from every
sentence, and a linear classifier learns which of the two is the better one from the difference of their
features.  BLEU+1 has a smoothed brevity penalty: without it, translations become too short (Nakov, Guzman and Vogel,
Optimizing for Sentence-Level BLEU+1 Yields Short Translations, COLING 2012).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array
from phrasetool.smt.evaluation.bleu import COLUMNS, LENGTH, ORDER, REFERENCE_LENGTH, sentence_bleu_plus_one
from phrasetool.smt.tuning.candidates import CandidatePool, Weights, model_score, normalised_as, normalised_start

# Newton's method takes few steps whatever the scale of the features, but its matrix is quadratic in their number.
_MOST_FOR_NEWTON = 300


@kernel
def _background_bleu(statistics: Int32Array, i: int, background: Weights) -> float:
    """Return BLEU of a candidate together with the background corpus, times the total reference length of both."""
    matches = 1.0
    totals = 1.0
    for n in range(ORDER):
        matches *= statistics[i, n] + background[n]
        totals *= statistics[i, ORDER + n] + background[ORDER + n]
    reference = statistics[i, REFERENCE_LENGTH] + background[REFERENCE_LENGTH]
    bleu = np.sqrt(np.sqrt(matches / totals))
    brevity = 1.0 - reference / (statistics[i, LENGTH] + background[LENGTH])
    if brevity < 0.0:
        bleu *= np.exp(brevity)
    return bleu * reference


@kernel
def _epoch(
    order: Int64Array,
    offsets: Int64Array,
    features: FloatArray,
    statistics: Int32Array,
    weights: Weights,
    total: Weights,
    background: Weights,
    step: float,
    decay: float,
) -> None:
    """Process the sentences once; the weights after each of them are added to `total`."""
    for s in order:
        first = offsets[s]
        hope = first
        fear = first
        hope_value = 0.0
        fear_value = 0.0
        hope_score = 0.0
        fear_score = 0.0
        hope_bleu = 0.0
        fear_bleu = 0.0
        for i in range(first, offsets[s + 1]):
            score = model_score(features, i, weights)
            bleu = _background_bleu(statistics, i, background)
            if i == first or score + bleu > hope_value:
                hope, hope_value, hope_score, hope_bleu = i, score + bleu, score, bleu
            if i == first or score - bleu > fear_value:
                fear, fear_value, fear_score, fear_bleu = i, score - bleu, score, bleu
        if hope_bleu > fear_bleu:
            loss = (hope_bleu - fear_bleu) - (hope_score - fear_score)
            if loss > 0.0:
                distance = 0.0
                for f in range(len(weights)):
                    difference = np.float64(features[hope, f]) - np.float64(features[fear, f])
                    distance += difference * difference
                if distance > 0.0:
                    size = min(step, loss / distance)
                    for f in range(len(weights)):
                        difference = np.float64(features[hope, f]) - np.float64(features[fear, f])
                        weights[f] += size * difference
            for k in range(COLUMNS):
                background[k] = decay * background[k] + statistics[hope, k]
        for f in range(len(weights)):
            total[f] += weights[f]


def optimise_mira(
    pool: CandidatePool,
    start_weights: npt.ArrayLike,
    seed: int,
    *,
    epochs: int = 60,
    step: float = 0.01,
    decay: float = 0.999,
) -> Weights:
    """Return weights under which the best candidates of the pool have a high BLEU.

    Of the average weights after each epoch, those with the best BLEU on the pool are returned, even if the start was
    better there: in a loop, the next decoder run evaluates them and finds candidates that the start did not find.

    Args:
        pool: candidates of all decoder runs so far.
        start_weights: shape (F,), not all 0; only their ratios matter.
        seed: of the order of sentences in each epoch.
        epochs: passes over the pool.
        step: C, the largest step towards a hope candidate.
        decay: of the background corpus, per sentence.

    Returns:
        float64, shape (F,); the sum of absolute values is 1.  Features that never vary keep their share of it.

    Raises:
        ValueError: the start is all 0, has NaN or infinity, or is of another length.
    """
    start = normalised_start(pool, start_weights)
    rng = np.random.default_rng(seed)
    weights, total = start.copy(), np.zeros_like(start)
    background = np.ones(COLUMNS)
    # Nothing can be learnt from a sentence with one candidate.
    sentences = np.flatnonzero(np.diff(pool.offsets) > 1)
    best, best_bleu = start, -1.0
    for _ in range(epochs):
        _epoch(
            rng.permutation(sentences), pool.offsets, pool.features, pool.statistics,
            weights, total, background, step, decay,
        )  # fmt: skip
        bleu = pool.bleu(total)
        if bleu > best_bleu:
            best, best_bleu = total.copy(), bleu
    return normalised_as(best, start, pool)


def optimise_pro(
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
    """Return weights that rank the candidates of a sentence as BLEU+1 does.

    Args:
        pool: candidates of all decoder runs so far.
        start_weights: shape (F,), the previous weights, not all 0; only their ratios matter.
        seed: of the pairs drawn.
        pairs: Gamma, pairs drawn from each sentence.
        kept: Xi, pairs kept from each sentence: those that differ most.
        minimum_difference: in BLEU+1 points; pairs that differ less are not kept.
        strength: inverse of the weight of the L2 penalty (C of scikit-learn; 1 / lambda of MegaM).
        interpolation: Psi, the share of the learnt weights in the result; the rest is the previous weights (0.1 in the
            paper, which needs some three times as many decoder runs).

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
        pairs, kept, minimum_difference: see `optimise_pro`.

    Returns:
        The better and the worse candidate of each pair, as positions in the pool: int64, shape (P,) each.
    """
    scores = sentence_bleu_plus_one(pool.statistics, smooth_brevity=True)
    better, worse = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first, end in zip(pool.offsets[:-1].tolist(), pool.offsets[1:].tolist(), strict=True):
        if end - first < 2:
            continue
        left, right = rng.integers(first, end, (2, pairs))
        difference = scores[left] - scores[right]
        far = np.flatnonzero(np.abs(difference) > minimum_difference)
        far = far[np.argsort(-np.abs(difference[far]), kind="stable")[:kept]]
        up = difference[far] > 0
        better.append(np.where(up, left[far], right[far]))
        worse.append(np.where(up, right[far], left[far]))
    return np.concatenate(better), np.concatenate(worse)


def _separate(differences: npt.NDArray[np.float64], strength: float) -> Weights:
    """Return weights of a logistic regression that separates differences from their negatives; 0 if there are none."""
    count, features = differences.shape
    if not differences.any():
        return np.zeros(features)
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    # A difference and its negative have the same loss, so one of the two with twice the weight represents both.
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
