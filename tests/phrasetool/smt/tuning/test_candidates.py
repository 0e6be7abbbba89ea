import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import bleu_statistics, corpus_bleu
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, first_best_bleu, normalised, normalised_as
from tests.phrasetool.smt.tuning.reference_lists import SENTENCES, read_lists, reference_pool, reference_weights

REFERENCES = [Phrases.from_lists([[1, 2, 3, 4, 5], [6, 7, 8, 9], [1, 1, 2, 2]])]
# (sentence, features, words), of few values, so that repetitions are common.
CANDIDATE = st.tuples(
    st.integers(0, 2),
    st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.5]), min_size=3, max_size=3),
    st.lists(st.integers(1, 9), max_size=5),
)
RUNS = st.lists(st.lists(CANDIDATE, max_size=8), max_size=4)
WEIGHTS = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


def lists_of(candidates):
    features = np.array([c[1] for c in candidates], np.float32).reshape(-1, 3)
    return NBest(
        np.array([c[0] for c in candidates], np.int32), features, Phrases.from_lists([c[2] for c in candidates])
    )


def statistics_of(candidate):
    return tuple(bleu_statistics(np.array([candidate[0]]), Phrases.from_lists([candidate[2]]), REFERENCES)[0].tolist())


def naive_pool(runs):
    """Return the distinct candidates of each sentence, and the number that each run added."""
    pool, added = [{} for _ in range(3)], []
    for run in runs:
        before = sum(map(len, pool))
        for candidate in run:
            pool[candidate[0]].setdefault((tuple(x + 0.0 for x in candidate[1]), statistics_of(candidate)))
        added.append(sum(map(len, pool)) - before)
    return [list(sentence) for sentence in pool], added


def naive_best(pool, weights):
    best = []
    for sentence in pool:
        scores = [sum(w * x for w, x in zip(weights, features, strict=True)) for features, _ in sentence]
        best.append(scores.index(max(scores)) if scores else None)
    return best


@given(RUNS, WEIGHTS)
def test_pool_agrees_with_naive(runs, weights):
    pool = CandidatePool(REFERENCES, 3)
    expected, added = naive_pool(runs)
    assert [pool.add(lists_of(run)) for run in runs] == added
    assert len(pool) == sum(added)
    result = [
        [
            (tuple(features), tuple(statistics))
            for features, statistics in zip(pool.features[a:b].tolist(), pool.statistics[a:b].tolist(), strict=True)
        ]
        for a, b in zip(pool.offsets[:-1], pool.offsets[1:], strict=True)
    ]
    assert result == expected
    best = naive_best(expected, weights)
    assert pool.best(np.array(weights, float)).tolist() == [
        -1 if i is None else pool.offsets[s] + i for s, i in enumerate(best)
    ]
    nothing = [(0,) * 8 + (length,) for length in REFERENCES[0].lengths]
    rows = [nothing[s] if i is None else expected[s][i][1] for s, i in enumerate(best)]
    assert pool.bleu(np.array(weights, float)) == pytest.approx(corpus_bleu(np.array(rows)))
    varies = [any(len({candidate[0][f] for candidate in sentence}) > 1 for sentence in expected) for f in range(3)]
    assert pool.varies().tolist() == varies


def test_many_features_are_all_counted():
    features = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)
    pool = CandidatePool(REFERENCES, 7)
    pool.add(NBest(np.zeros(50, np.int32), features, Phrases.from_lists([[i] for i in range(50)])))
    for f in range(7):
        assert pool.best(np.eye(7)[f])[0] == features[:, f].argmax()


def test_bleu_of_the_first_candidates():
    result = lists_of([(2, [0, 0, 0], [1, 1, 2, 2]), (2, [0, 0, 0], [9]), (0, [0, 0, 0], [1, 2, 3, 4, 5])])
    # Sentence 1 has no candidate: its translation counts as empty, but its reference counts.
    expected = 100 * np.exp(1 - 13 / 9)
    assert first_best_bleu(result, REFERENCES) == pytest.approx(expected)
    pool = CandidatePool(REFERENCES, 3)
    pool.add(result)
    assert pool.bleu(np.zeros(3)) == pytest.approx(expected)
    assert CandidatePool(REFERENCES, 3).bleu(np.ones(3)) == 0


@pytest.mark.parametrize(
    ("features", "sentence", "message"),
    [
        (np.zeros((1, 2)), 0, r"shape \(1, 3\), got \(1, 2\)"),
        (np.zeros((2, 3)), 0, r"shape \(1, 3\), got \(2, 3\)"),
        (np.array([[0, np.nan, 0]]), 0, "NaN"),
        (np.array([[0, np.inf, 0]]), 0, "infinite"),
        (np.zeros((1, 3)), 3, "sentence numbers"),
    ],
)
def test_invalid_candidates_are_refused_and_change_nothing(features, sentence, message):
    pool = CandidatePool(REFERENCES, 3)
    with pytest.raises(ValueError, match=message):
        pool.add(NBest(np.array([sentence], np.int32), features.astype(np.float32), Phrases.from_lists([[1]])))
    assert len(pool) == 0


def test_weights_are_normalised_by_their_absolute_values():
    assert normalised([1, -3, 0, 4]).tolist() == [0.125, -0.375, 0, 0.5]
    for wrong in ([0.0, 0.0], [1.0, np.nan], [np.inf, 1.0]):
        with pytest.raises(ValueError, match="weights"):
            normalised(wrong)


def test_features_that_never_vary_keep_their_share():
    pool = CandidatePool(REFERENCES, 3)
    pool.add(lists_of([(0, [1, 0, 5], [1]), (0, [2, 0, 5], [2]), (1, [1, 1, 7], [1]), (1, [1, 3, 7], [2])]))
    start = np.array([0.5, -0.25, -0.25])
    assert normalised_as(np.array([300.0, 100, 12]), start, pool).tolist() == [0.5625, 0.1875, -0.25]
    # Nothing was learnt, or no share is left to distribute.
    assert normalised_as(np.array([0.0, 0, 12]), start, pool).tolist() == start.tolist()
    assert normalised_as(np.array([1.0, 2, 1]), np.array([0, 0, 1.0]), pool).tolist() == [0.25, 0.5, 0.25]


@pytest.mark.requires_reference
def test_first_candidates_of_the_reference_lists_are_its_translations(reference):
    lists, truth, totals = read_lists(reference)
    weights = reference_weights(reference)
    pool = reference_pool(reference)
    assert len(np.unique(lists.sentence)) == SENTENCES
    # Unknown words cost 100 each and are not among the features.
    rest = totals - lists.features @ weights
    assert np.abs(rest - 100 * np.round(rest / 100)).max() < 2e-3
    assert first_best_bleu(lists, truth) == pool.bleu(weights)
