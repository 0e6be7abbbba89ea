import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.tuning import mira
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, normalised
from tests.phrasetool.smt.tuning.reference_lists import SIGNS, reference_pool, reference_weights


def naive_mira(pool, start, orders, step, decay):
    """The average weights after each epoch: Cherry and Foster's loop in plain Python."""
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
    """Candidates whose quality is the first feature, minus half of the second, with some noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 40, (sentences, 10))
    found, values = [], []
    for reference in truth:
        for _ in range(candidates):
            words = reference.copy()
            words[rng.random(10) < rng.random()] = 99
            right = (words == reference).sum()
            row = rng.normal(size=features)
            row[0] = right / 2 + rng.normal() + 0.5 * row[1]
            found.append(words.tolist())
            values.append(row)
    pool = CandidatePool([Phrases.from_lists(truth.tolist())], features)
    numbers = np.repeat(np.arange(sentences), candidates).astype(np.int32)
    pool.add(NBest(numbers, np.array(values, np.float32), Phrases.from_lists(found)))
    return pool


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(-4, 4), min_size=5, max_size=5).filter(any))
def test_weights_are_those_of_the_plain_loop(seed, start):
    pool = random_pool(seed)
    rng = np.random.default_rng(7)
    averages = naive_mira(pool, start, [rng.permutation(12) for _ in range(4)], 0.01, 0.999)
    scores = [pool.bleu(np.array(average)) for average in averages]
    expected = normalised(averages[scores.index(max(scores))])
    np.testing.assert_allclose(mira.optimise(pool, start, 7, epochs=4), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_direction_is_found(seed):
    pool = random_pool(seed, sentences=60, candidates=20)
    weights = mira.optimise(pool, [1, 1, 1, 1, 1], seed)
    assert np.abs(weights).sum() == pytest.approx(1)
    assert weights[0] > 0
    assert weights[1] < 0
    assert np.abs(weights[2:]).max() < weights[0] / 4
    assert pool.bleu(weights) > pool.bleu(np.ones(5)) + 3
    assert pool.bleu(weights) > pool.bleu(np.array([1, -0.5, 0, 0, 0])) - 1


def test_it_depends_on_nothing_but_its_arguments():
    pool = random_pool(1)
    weights = mira.optimise(pool, np.ones(5), 3)
    assert mira.optimise(pool, np.ones(5), 3).tolist() == weights.tolist()
    assert mira.optimise(pool, 8 * np.ones(5), 3).tolist() == weights.tolist()
    assert mira.optimise(pool, np.ones(5), 4).tolist() != weights.tolist()


def test_many_features_and_some_that_never_vary():
    pool = random_pool(2, features=400)
    constant = np.arange(100, 200)
    pool.features[:, constant] = 1e6
    start = np.ones(400)
    weights = mira.optimise(pool, start, 1)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[constant], 1 / 400)
    assert np.abs(weights).sum() == pytest.approx(1)


@pytest.mark.parametrize("texts", [[], [[1, 2]], [[1, 2], [1, 2]], [[1, 2], [3]]])
def test_where_there_is_little_to_learn_the_weights_stay_sound(texts):
    pool = CandidatePool([Phrases.from_lists([[1, 2], [3, 4]])], 2)
    features = np.zeros((len(texts), 2), np.float32)
    pool.add(NBest(np.zeros(len(texts), np.int32), features, Phrases.from_lists(texts)))
    assert mira.optimise(pool, [3, -1], 1).tolist() == [0.75, -0.25]


@pytest.mark.parametrize("start", [[0, 0, 0, 0, 0], [1, 2, 3], [np.nan, 1, 1, 1, 1]])
def test_impossible_starts_are_refused(start):
    with pytest.raises(ValueError, match="weights"):
        mira.optimise(random_pool(1), start, 1)


@pytest.mark.requires_reference
@pytest.mark.parametrize("start", [SIGNS, np.ones(14), np.array([0.3] * 7 + [0.5, -1, 0.2] + [0.2] * 4)])
def test_the_reference_lists_are_ranked_better(reference, start):
    pool = reference_pool(reference)
    goal = pool.bleu(reference_weights(reference))
    weights = mira.optimise(pool, start, 1)
    assert pool.bleu(weights) > pool.bleu(start) + 1
    assert pool.bleu(weights) > goal + 0.3
    assert (np.sign(weights[[7, 8]]) == [1, -1]).all()
