"""Margins of candidates against obvious Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.bitext.nearest import Neighbours, nearest_both_ways
from phrasetool.bitext.neighbour_margins import MARGINS, candidates, margin, reach
from tests import naive_mining
from tests.phrasetool.bitext.test_nearest import COARSE, units, vectors


def check(s, t, k, how, least):
    found = candidates(*nearest_both_ways(s, t, k), how, least)
    expected = naive_mining.scored(s, t, k, how, np.float32(least))
    pairs = list(zip(found.sources.tolist(), found.targets.tolist(), strict=True))
    assert pairs == sorted(expected)
    np.testing.assert_allclose(found.scores, [expected[pair][0] for pair in pairs], atol=2e-5)
    assert found.forward.tolist() == [expected[pair][1] for pair in pairs]
    assert found.backward.tolist() == [expected[pair][2] for pair in pairs]
    return found


@pytest.mark.parametrize("how", MARGINS)
@pytest.mark.parametrize("k", [1, 4, 99])
def test_against_obvious_python(how, k):
    check(vectors(1, 30), vectors(2, 25), k, how, 0.1)


@settings(max_examples=40, deadline=None)
@given(COARSE, COARSE, st.integers(1, 4), st.sampled_from(MARGINS))
def test_ties_duplicates_and_zeros(sources, targets, k, how):
    check(units(sources), units(targets), k, how, -1.0)


def test_what_is_near_to_everything_loses():
    """A hub has the highest cosines, and the lowest margins."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(20, 16)) + 2
    s = units(base)
    t = units(np.vstack([base + 0.9 * rng.normal(size=base.shape), base.mean(0)]))
    found = {how: candidates(*nearest_both_ways(s, t, 4), how) for how in ("absolute", "ratio")}
    hub = {how: np.mean(one.scores[one.targets == 20] > np.median(one.scores)) for how, one in found.items()}
    assert hub["ratio"] < hub["absolute"]


def test_a_sentence_near_to_none_gives_no_giant_ratio():
    few = np.array([0.001], np.float32)
    assert margin(few, np.array([0.0001]), "ratio")[0] < 0.1
    with pytest.raises(ValueError, match="unknown margin 'log'"):
        margin(few, np.zeros(1), "log")


def test_reach_leaves_out_what_is_not_there():
    found = Neighbours(np.array([[1, -1], [-1, -1]]), np.array([[0.5, 0], [0, 0]], np.float32))
    assert reach(found).tolist() == [0.5, 0.0]
