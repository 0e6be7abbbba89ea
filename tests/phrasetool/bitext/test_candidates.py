"""Margins of candidate pairs, and the selection of pairs, compared with naive implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.bitext.candidates import (
    MARGINS,
    RETRIEVALS,
    Candidates,
    best_of_both,
    candidates,
    margin,
    reach,
    retrieve,
)
from phrasetool.bitext.nearest import Neighbours, nearest_both_ways
from tests import naive_mining
from tests.phrasetool.bitext.test_nearest import COARSE, units, vectors

# (source, target) -> score with few distinct values, and whether each is a neighbour of the other.
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.integers(0, 3).map(float), st.booleans(), st.booleans()).filter(lambda pair: pair[1] or pair[2]),
    max_size=20,
)


def check(s, t, k, how, least):
    result = candidates(*nearest_both_ways(s, t, k), how, least)
    expected = naive_mining.scored(s, t, k, how, np.float32(least))
    pairs = list(zip(result.sources.tolist(), result.targets.tolist(), strict=True))
    assert pairs == sorted(expected)
    np.testing.assert_allclose(result.scores, [expected[pair][0] for pair in pairs], atol=2e-5)
    assert result.forward.tolist() == [expected[pair][1] for pair in pairs]
    assert result.backward.tolist() == [expected[pair][2] for pair in pairs]
    return result


@pytest.mark.parametrize("how", MARGINS)
@pytest.mark.parametrize("k", [1, 4, 99])
def test_margins_agree_with_naive(how, k):
    check(vectors(1, 30), vectors(2, 25), k, how, 0.1)


@settings(max_examples=40, deadline=None)
@given(COARSE, COARSE, st.integers(1, 4), st.sampled_from(MARGINS))
def test_ties_duplicates_and_zeros(sources, targets, k, how):
    check(units(sources), units(targets), k, how, -1.0)


def test_hubs_have_low_margins():
    """A hub, which is near to everything, has high cosines but low margins."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(20, 16)) + 2
    s = units(base)
    t = units(np.vstack([base + 0.9 * rng.normal(size=base.shape), base.mean(0)]))
    result = {kind: candidates(*nearest_both_ways(s, t, 4), kind) for kind in ("absolute", "ratio")}
    hub = {kind: np.mean(pairs.scores[pairs.targets == 20] > np.median(pairs.scores)) for kind, pairs in result.items()}
    assert hub["ratio"] < hub["absolute"]


def test_sentences_without_near_neighbours_have_small_ratios():
    cosines = np.array([0.001], np.float32)
    assert margin(cosines, np.array([0.0001]), "ratio")[0] < 0.1
    with pytest.raises(ValueError, match="unknown margin 'log'"):
        margin(cosines, np.zeros(1), "log")


def test_reach_ignores_missing_neighbours():
    neighbours = Neighbours(np.array([[1, -1], [-1, -1]]), np.array([[0.5, 0], [0, 0]], np.float32))
    assert reach(neighbours).tolist() == [0.5, 0.0]


def listed(found):
    pairs = sorted(found)
    columns = [np.array([found[pair][i] for pair in pairs]) for i in range(3)]
    sources, targets = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    scores, forward, backward = columns[0].astype(np.float64), columns[1].astype(bool), columns[2].astype(bool)
    return Candidates(sources, targets, scores.astype(np.float32), scores, forward, backward)


@settings(max_examples=200, deadline=None)
@given(PAIRS, st.sampled_from(RETRIEVALS))
def test_selection_agrees_with_naive(found, how):
    pairs = listed(found)
    selected = pairs.take(retrieve(pairs, how))
    assert list(zip(selected.sources.tolist(), selected.targets.tolist(), strict=True)) == naive_mining.retrieved(
        found, how
    )


@settings(max_examples=100, deadline=None)
@given(PAIRS, st.integers(1, 3))
def test_best_of_both(found, count):
    pairs = listed(found)
    expected = set()
    for side in range(2):
        for sentence in range(6):
            ranked = sorted((-found[pair][0], pair) for pair in found if pair[side] == sentence)
            expected |= {pair for _, pair in ranked[:count]}
    chosen = pairs.take(best_of_both(pairs, count))
    assert list(zip(chosen.sources.tolist(), chosen.targets.tolist(), strict=True)) == sorted(expected)


def test_one_to_one_takes_the_best_first():
    scored = {
        (0, 0): (0.9, True, True),
        (0, 1): (0.8, True, True),
        (1, 0): (0.85, True, True),
        (1, 1): (0.1, True, True),
    }
    pairs = listed(scored)
    # On each side, the best partner of 1 is 0, which is taken; (1, 1) is the best pair of neither sentence.
    assert pairs.take(retrieve(pairs)).scores.tolist() == [0.9]


def test_unknown_retrieval():
    with pytest.raises(ValueError, match="unknown retrieval 'best'"):
        retrieve(listed({}), "best")
