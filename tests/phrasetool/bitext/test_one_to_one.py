"""Which candidates are taken, against obvious Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.bitext.neighbour_margins import Candidates
from phrasetool.bitext.one_to_one import RETRIEVALS, best_of_both, retrieve
from tests import naive_mining

# (source, target) -> score of few values, and both ways.
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.integers(0, 3).map(float), st.booleans(), st.booleans()).filter(lambda pair: pair[1] or pair[2]),
    max_size=20,
)


def listed(found):
    pairs = sorted(found)
    columns = [np.array([found[pair][i] for pair in pairs]) for i in range(3)]
    sources, targets = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    scores, forward, backward = columns[0].astype(np.float64), columns[1].astype(bool), columns[2].astype(bool)
    return Candidates(sources, targets, scores.astype(np.float32), scores, forward, backward)


@settings(max_examples=200, deadline=None)
@given(PAIRS, st.sampled_from(RETRIEVALS))
def test_against_obvious_python(found, how):
    pairs = listed(found)
    taken = pairs.take(retrieve(pairs, how))
    assert list(zip(taken.sources.tolist(), taken.targets.tolist(), strict=True)) == naive_mining.retrieved(found, how)


@settings(max_examples=100, deadline=None)
@given(PAIRS, st.integers(1, 3))
def test_best_of_both(found, count):
    pairs = listed(found)
    expected = set()
    for side in range(2):
        for own in range(6):
            ranked = sorted((-found[pair][0], pair) for pair in found if pair[side] == own)
            expected |= {pair for _, pair in ranked[:count]}
    chosen = pairs.take(best_of_both(pairs, count))
    assert list(zip(chosen.sources.tolist(), chosen.targets.tolist(), strict=True)) == sorted(expected)


def test_one_to_one_takes_the_best_first():
    found = {
        (0, 0): (0.9, True, True),
        (0, 1): (0.8, True, True),
        (1, 0): (0.85, True, True),
        (1, 1): (0.1, True, True),
    }
    pairs = listed(found)
    # The best of 1 is 0, which is taken; what is left for 1 was nobody's best.
    assert pairs.take(retrieve(pairs)).scores.tolist() == [0.9]


def test_there_is_no_such_way():
    with pytest.raises(ValueError, match="unknown retrieval 'best'"):
        retrieve(listed({}), "best")
