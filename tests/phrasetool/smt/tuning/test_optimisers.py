"""Optimisers, compared with plain loops and a general minimiser, and on n-best lists of a real decoder."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import sentence_bleu_plus_one
from phrasetool.smt.tuning import optimisers
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, normalised
from tests.phrasetool.smt.tuning.reference_lists import SIGNS, reference_pool, reference_weights


def naive_mira(pool, start, orders, step, decay):
    """Return the average weights after each epoch of Cherry and Foster's loop, in plain Python."""
    weights = [w / sum(map(abs, start)) for w in start]
    total, background, averages = [0.0] * len(weights), [1.0] * 9, []

    def bleu(row):
        rows = [a + b for a, b in zip(row, background, strict=True)]
        precision = sum(math.log(rows[n] / rows[4 + n]) for n in range(4)) / 4
        return math.exp(precision + min(0, 1 - rows[8] / rows[4])) * rows[8]

    def score(features):
        return sum(w * x for w, x in zip(weights, features, strict=True))

    sentences = 0
    for order in orders:
        for s in order:
            group = range(pool.offsets[s], pool.offsets[s + 1])
            x = {i: pool.features[i].tolist() for i in group}
            quality = {i: bleu(pool.statistics[i].tolist()) for i in group}
            hope = max(group, key=lambda i: score(x[i]) + quality[i])
            fear = max(group, key=lambda i: score(x[i]) - quality[i])
            if quality[hope] > quality[fear]:
                difference = [a - b for a, b in zip(x[hope], x[fear], strict=True)]
                loss = quality[hope] - quality[fear] - (score(x[hope]) - score(x[fear]))
                norm = sum(d * d for d in difference)
                if loss > 0 and norm > 0:
                    weights = [w + min(step, loss / norm) * d for w, d in zip(weights, difference, strict=True)]
                row = pool.statistics[hope].tolist()
                background = [decay * b + r for b, r in zip(background, row, strict=True)]
            total = [t + w for t, w in zip(total, weights, strict=True)]
            sentences += 1
        averages.append([t / sentences for t in total])
    return averages


def random_pool(seed, sentences=12, candidates=8, features=5):
    """Return candidates whose quality is the first feature, minus half of the second, with some noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 40, (sentences, 10))
    result, values = [], []
    for reference in truth:
        for _ in range(candidates):
            words = reference.copy()
            words[rng.random(10) < rng.random()] = 99
            right = (words == reference).sum()
            row = rng.normal(size=features)
            row[0] = right / 2 + rng.normal() + 0.5 * row[1]
            result.append(words.tolist())
            values.append(row)
    pool = CandidatePool([Phrases.from_lists(truth.tolist())], features)
    numbers = np.repeat(np.arange(sentences), candidates).astype(np.int32)
    pool.add(NBest(numbers, np.array(values, np.float32), Phrases.from_lists(result)))
    return pool


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(-4, 4), min_size=5, max_size=5).filter(any))
def test_weights_are_those_of_the_plain_loop(seed, start):
    pool = random_pool(seed)
    rng = np.random.default_rng(7)
    averages = naive_mira(pool, start, [rng.permutation(12) for _ in range(4)], 0.01, 0.999)
    scores = [pool.bleu(np.array(average)) for average in averages]
    expected = normalised(averages[scores.index(max(scores))])
    np.testing.assert_allclose(optimisers.optimise_mira(pool, start, 7, epochs=4), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_direction_is_found_with_mira(seed):
    pool = random_pool(seed, sentences=60, candidates=20)
    weights = optimisers.optimise_mira(pool, [1, 1, 1, 1, 1], seed)
    assert np.abs(weights).sum() == pytest.approx(1)
    assert weights[0] > 0
    assert weights[1] < 0
    assert np.abs(weights[2:]).max() < weights[0] / 4
    assert pool.bleu(weights) > pool.bleu(np.ones(5)) + 3
    assert pool.bleu(weights) > pool.bleu(np.array([1, -0.5, 0, 0, 0])) - 1


def test_mira_depends_on_its_arguments_only():
    pool = random_pool(1)
    weights = optimisers.optimise_mira(pool, np.ones(5), 3)
    assert optimisers.optimise_mira(pool, np.ones(5), 3).tolist() == weights.tolist()
    assert optimisers.optimise_mira(pool, 8 * np.ones(5), 3).tolist() == weights.tolist()
    assert optimisers.optimise_mira(pool, np.ones(5), 4).tolist() != weights.tolist()


def test_many_features_and_some_that_never_vary_with_mira():
    pool = random_pool(2, features=400)
    constant = np.arange(100, 200)
    pool.features[:, constant] = 1e6
    start = np.ones(400)
    weights = optimisers.optimise_mira(pool, start, 1)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[constant], 1 / 400)
    assert np.abs(weights).sum() == pytest.approx(1)


@pytest.mark.parametrize("texts", [[], [[1, 2]], [[1, 2], [1, 2]], [[1, 2], [3]]])
def test_mira_keeps_the_start_if_there_is_nothing_to_learn(texts):
    pool = CandidatePool([Phrases.from_lists([[1, 2], [3, 4]])], 2)
    features = np.zeros((len(texts), 2), np.float32)
    pool.add(NBest(np.zeros(len(texts), np.int32), features, Phrases.from_lists(texts)))
    assert optimisers.optimise_mira(pool, [3, -1], 1).tolist() == [0.75, -0.25]


@pytest.mark.parametrize("start", [[0, 0, 0, 0, 0], [1, 2, 3], [np.nan, 1, 1, 1, 1]])
@pytest.mark.parametrize("optimise", [optimisers.optimise_mira, optimisers.optimise_pro])
def test_impossible_starts_are_refused(start, optimise):
    with pytest.raises(ValueError, match="weights"):
        optimise(random_pool(1), start, 1)


@pytest.mark.requires_reference
@pytest.mark.parametrize("start", [SIGNS, np.ones(14), np.array([0.3] * 7 + [0.5, -1, 0.2] + [0.2] * 4)])
def test_the_reference_lists_are_ranked_better_with_mira(reference, start):
    pool = reference_pool(reference)
    reference_bleu = pool.bleu(reference_weights(reference))
    weights = optimisers.optimise_mira(pool, start, 1)
    assert pool.bleu(weights) > pool.bleu(start) + 1
    assert pool.bleu(weights) > reference_bleu + 0.3
    assert (np.sign(weights[[7, 8]]) == [1, -1]).all()


def test_pairs_are_the_ones_that_differ_most():
    pool = random_pool(1)
    scores = sentence_bleu_plus_one(pool.statistics, smooth_brevity=True)
    # Enough draws to include every pair of 8 candidates.
    better, worse = optimisers.sample_pairs(pool, np.random.default_rng(1), 20_000, 1, 5.0)
    sentence = np.repeat(np.arange(12), 8)
    assert (sentence[better] == sentence[worse]).all()
    for s in range(12):
        group = scores[8 * s : 8 * s + 8]
        kept = np.flatnonzero(sentence[better] == s)
        if np.ptp(group) > 5:
            assert len(kept) == 1
            assert scores[better[kept]] - scores[worse[kept]] == pytest.approx(np.ptp(group))
        else:
            assert not len(kept)


def test_small_differences_are_left_out_and_the_number_is_kept():
    pool = random_pool(2, candidates=30)
    scores = sentence_bleu_plus_one(pool.statistics, smooth_brevity=True)
    better, worse = optimisers.sample_pairs(pool, np.random.default_rng(1), 500, 20, 12.0)
    assert (scores[better] - scores[worse] > 12).all()
    assert np.bincount(better // 30, minlength=12).max() <= 20


def test_weights_minimise_the_penalised_loss():
    pool = random_pool(3)
    learnt = optimisers.optimise_pro(pool, np.ones(5), 1, interpolation=1.0, strength=0.5)
    better, worse = optimisers.sample_pairs(pool, np.random.default_rng(1), 5000, 50, 5.0)
    x = pool.features[better].astype(float) - pool.features[worse]

    # Each pair counts for itself and for its mirror image, as in Moses' input to MegaM.
    def loss(w):
        return 0.5 * w @ w + 0.5 * 2 * np.logaddexp(0, -x @ w).sum()

    expected = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(learnt, normalised(expected), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_direction_is_found_with_pro(seed):
    pool = random_pool(seed, sentences=60, candidates=20)
    weights = optimisers.optimise_pro(pool, np.ones(5), seed, interpolation=1.0)
    assert weights[0] > 0
    assert weights[1] < 0
    assert np.abs(weights[2:]).max() < weights[0] / 3
    assert pool.bleu(weights) > pool.bleu(np.ones(5)) + 3


def test_the_result_lies_between_the_start_and_the_learnt_weights():
    pool = random_pool(4)
    start = normalised([1, 1, 1, 1, 1])
    learnt = optimisers.optimise_pro(pool, start, 1, interpolation=1.0)
    mixed = normalised(0.3 * learnt + 0.7 * start)
    np.testing.assert_allclose(optimisers.optimise_pro(pool, start, 1, interpolation=0.3), mixed)
    assert optimisers.optimise_pro(pool, 5 * start, 1).tolist() == optimisers.optimise_pro(pool, start, 1).tolist()


def test_many_features_and_some_that_never_vary_with_pro():
    pool = random_pool(2, features=400)
    pool.features[:, 100:200] = 1e6
    weights = optimisers.optimise_pro(pool, np.ones(400), 1)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[100:200], 1 / 400)
    assert np.abs(weights).sum() == pytest.approx(1)


@pytest.mark.parametrize("texts", [[], [[1, 2]], [[1, 2], [1, 2]], [[1, 2], [3]]])
def test_pro_keeps_the_start_if_there_is_nothing_to_learn(texts):
    pool = CandidatePool([Phrases.from_lists([[1, 2], [3, 4]])], 2)
    features = np.zeros((len(texts), 2), np.float32)
    pool.add(NBest(np.zeros(len(texts), np.int32), features, Phrases.from_lists(texts)))
    assert optimisers.optimise_pro(pool, [3, -1], 1).tolist() == [0.75, -0.25]


def test_one_pair_is_enough():
    pool = CandidatePool([Phrases.from_lists([[1, 2]])], 2)
    pool.add(NBest(np.zeros(2, np.int32), np.array([[1, 5], [0, 5]], np.float32), Phrases.from_lists([[1, 2], [3]])))
    assert optimisers.optimise_pro(pool, [-3, 1], 1, pairs=1000, kept=1, interpolation=1.0).tolist() == [0.75, 0.25]


@pytest.mark.requires_reference
@pytest.mark.parametrize("start", [SIGNS, np.ones(14)])
def test_the_reference_lists_are_ranked_better_with_pro(reference, start):
    pool = reference_pool(reference)
    weights = optimisers.optimise_pro(pool, start, 1, interpolation=1.0)
    assert pool.bleu(weights) > pool.bleu(start) + 1
    assert pool.bleu(weights) > pool.bleu(reference_weights(reference)) - 0.2
    assert (np.sign(weights[[7, 8]]) == [1, -1]).all()
