"""K-best batch MIRA: Cherry and Foster, Batch Tuning Strategies for Statistical Machine Translation (NAACL 2012).

The default values, the BLEU with a decaying background corpus and the choice of the best epoch are those of kbmira in
Moses.  As in the paper, weights are averaged over sentences (kbmira: over sentences that changed them).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array
from phrasetool.smt.evaluation.bleu import COLUMNS, LENGTH, ORDER, REFERENCE_LENGTH
from phrasetool.smt.tuning.candidates import CandidatePool, Weights, model_score, normalised_as, normalised_start


@kernel
def _background_bleu(statistics: Int32Array, i: int, background: Weights) -> float:
    """BLEU of a candidate together with the background corpus, times the length of all references of both."""
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
    """Go through the sentences once; `total` gathers the weights after each of them."""
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


def optimise(
    pool: CandidatePool,
    start_weights: npt.ArrayLike,
    seed: int,
    *,
    epochs: int = 60,
    step: float = 0.01,
    decay: float = 0.999,
) -> Weights:
    """Weights under which the best candidates of the pool have a high BLEU.

    Of the average weights after each epoch, those with the best BLEU on the pool are taken, even if the start was
    better there: in a loop, the next decoder run tells, and it finds candidates that the start did not find.

    Args:
        pool: candidates of all decoder runs so far.
        start_weights: shape (F,), not all 0; only their ratios matter.
        seed: of the order of sentences in each epoch.
        epochs: passes over the pool.
        step: C, the largest step towards a hope candidate.
        decay: of the background corpus, a sentence.

    Returns:
        float64, shape (F,); the sum of absolute values is 1.  Features that never vary keep their share of it.

    Raises:
        ValueError: the start is all 0, has NaN or infinity, or is of another length.
    """
    start = normalised_start(pool, start_weights)
    rng = np.random.default_rng(seed)
    weights, total = start.copy(), np.zeros_like(start)
    background = np.ones(COLUMNS)
    # A sentence with one candidate has nothing to teach.
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
