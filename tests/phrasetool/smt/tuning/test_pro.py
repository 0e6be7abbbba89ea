import numpy as np
import pytest
from scipy.optimize import minimize

from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import sentence_bleu_plus_one
from phrasetool.smt.tuning import pro
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, normalised
from tests.phrasetool.smt.tuning.reference_lists import SIGNS, reference_pool, reference_weights
from tests.phrasetool.smt.tuning.test_mira import random_pool


def test_pairs_are_the_ones_that_differ_most():
    pool = random_pool(1)
    scores = sentence_bleu_plus_one(pool.statistics, smooth_brevity=True)
    # So many draws that every pair of 8 candidates is among them.
    better, worse = pro.sample_pairs(pool, np.random.default_rng(1), 20_000, 1, 5.0)
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
    better, worse = pro.sample_pairs(pool, np.random.default_rng(1), 500, 20, 12.0)
    assert (scores[better] - scores[worse] > 12).all()
    assert np.bincount(better // 30, minlength=12).max() <= 20


def test_weights_minimise_the_penalised_loss():
    pool = random_pool(3)
    learnt = pro.optimise(pool, np.ones(5), 1, interpolation=1.0, strength=0.5)
    better, worse = pro.sample_pairs(pool, np.random.default_rng(1), 5000, 50, 5.0)
    x = pool.features[better].astype(float) - pool.features[worse]

    # Each pair stands for itself and its mirror image, as in Moses' input to MegaM.
    def loss(w):
        return 0.5 * w @ w + 0.5 * 2 * np.logaddexp(0, -x @ w).sum()

    expected = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(learnt, normalised(expected), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_direction_is_found(seed):
    pool = random_pool(seed, sentences=60, candidates=20)
    weights = pro.optimise(pool, np.ones(5), seed, interpolation=1.0)
    assert weights[0] > 0
    assert weights[1] < 0
    assert np.abs(weights[2:]).max() < weights[0] / 3
    assert pool.bleu(weights) > pool.bleu(np.ones(5)) + 3


def test_the_result_lies_between_the_start_and_what_is_learnt():
    pool = random_pool(4)
    start = normalised([1, 1, 1, 1, 1])
    learnt = pro.optimise(pool, start, 1, interpolation=1.0)
    mixed = normalised(0.3 * learnt + 0.7 * start)
    np.testing.assert_allclose(pro.optimise(pool, start, 1, interpolation=0.3), mixed)
    assert pro.optimise(pool, 5 * start, 1).tolist() == pro.optimise(pool, start, 1).tolist()


def test_many_features_and_some_that_never_vary():
    pool = random_pool(2, features=400)
    pool.features[:, 100:200] = 1e6
    weights = pro.optimise(pool, np.ones(400), 1)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[100:200], 1 / 400)
    assert np.abs(weights).sum() == pytest.approx(1)


@pytest.mark.parametrize("texts", [[], [[1, 2]], [[1, 2], [1, 2]], [[1, 2], [3]]])
def test_where_there_is_nothing_to_learn_the_start_comes_back(texts):
    pool = CandidatePool([Phrases.from_lists([[1, 2], [3, 4]])], 2)
    features = np.zeros((len(texts), 2), np.float32)
    pool.add(NBest(np.zeros(len(texts), np.int32), features, Phrases.from_lists(texts)))
    assert pro.optimise(pool, [3, -1], 1).tolist() == [0.75, -0.25]


def test_one_pair_is_enough():
    pool = CandidatePool([Phrases.from_lists([[1, 2]])], 2)
    pool.add(NBest(np.zeros(2, np.int32), np.array([[1, 5], [0, 5]], np.float32), Phrases.from_lists([[1, 2], [3]])))
    assert pro.optimise(pool, [-3, 1], 1, pairs=1000, kept=1, interpolation=1.0).tolist() == [0.75, 0.25]


@pytest.mark.parametrize("start", [[0, 0, 0, 0, 0], [1, 2, 3], [np.nan, 1, 1, 1, 1]])
def test_impossible_starts_are_refused(start):
    with pytest.raises(ValueError, match="weights"):
        pro.optimise(random_pool(1), start, 1)


@pytest.mark.requires_reference
@pytest.mark.parametrize("start", [SIGNS, np.ones(14)])
def test_the_reference_lists_are_ranked_better(reference, start):
    pool = reference_pool(reference)
    weights = pro.optimise(pool, start, 1, interpolation=1.0)
    assert pool.bleu(weights) > pool.bleu(start) + 1
    assert pool.bleu(weights) > pool.bleu(reference_weights(reference)) - 0.2
    assert (np.sign(weights[[7, 8]]) == [1, -1]).all()
