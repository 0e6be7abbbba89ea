import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.extraction.smoothing import (
    SMALLEST_PROBABILITY,
    GoodTuring,
    JointCounts,
    KneserNey,
    PairStatistics,
    candidate_probabilities,
    forced_probabilities,
    smoothing_of,
)

probability = st.floats(0, 1)
uses = st.floats(0, 1e6)


def statistics(*by_count):
    return PairStatistics(100, np.array([0, *by_count] + [0] * (10 - len(by_count))))


def test_good_turing_by_hand():
    """N1..N4 = 60, 20, 10, 4."""
    discounts = GoodTuring(statistics(60, 20, 10, 4)).discounts
    assert discounts[1] == pytest.approx(2 * 20.1 / 60.1)
    assert discounts[2] == pytest.approx(1.5 * 10.1 / 20.1)
    # 4/3 * 4.1/10.1 = 0.541 would be lower than the value for a count of 2.
    assert discounts[3] == discounts[2]
    # 6/5 * 0.1/0.1 is more than 1.
    assert discounts[5] == 1.0
    counts = JointCounts(*(np.array(column) for column in ([1, 8, 9], [2, 9, 9], [4, 9, 9], [2, 2, 1], [3, 2, 1])))
    indirect, direct = smoothing_of("good-turing", statistics(60, 20, 10, 4))(counts)
    assert np.array_equal(indirect, direct)
    assert direct[0] == pytest.approx(2 * 20.1 / 60.1)
    assert direct[2] == 9


def test_kneser_ney_by_hand():
    """N1..N4 = 60, 20, 10, 4: Y = 60/100."""
    method = KneserNey(statistics(60, 20, 10, 4))
    assert method.discounts.tolist() == pytest.approx([1 - 1.2 * 20 / 60, 2 - 1.8 * 10 / 20, 3 - 2.4 * 4 / 10])
    # c(s,t) = 1, c(s) = 5, c(t) = 10, the source has 3 targets, the target 4 sources.
    counts = JointCounts(*(np.array([value]) for value in (1, 5, 10, 3, 4)))
    indirect, direct = method(counts)
    assert direct[0] == pytest.approx(1 - 0.6 + 0.6 * 3 * 4 / 100)
    assert indirect[0] == pytest.approx(1 - 0.6 + 0.6 * 4 * 3 / 100)


def test_kneser_ney_without_counts():
    """If no pair was seen twice, the discounts are the caps, and discounted counts stay above zero."""
    method = KneserNey(statistics(60))
    assert method.discounts.tolist() == pytest.approx([0.9, 1.9, 2.9])


@given(st.lists(st.tuples(uses, uses, uses, probability, probability), max_size=20), st.sampled_from([0.5, 1.0, 4.0]))
def test_agrees_with_the_formula(rows, prior):
    # A pair is used no more often than its source and its target.
    counts = np.array([(c, c + f, c + e) for c, f, e, _, _ in rows], np.float32).reshape(-1, 3)
    direct, inverse = (np.array([row[k] for row in rows], np.float64) for k in (3, 4))
    result = forced_probabilities(counts, direct, inverse, prior)
    assert (result.dtype, result.shape) == (np.float64, (len(rows), 2))
    for (pair, source, target), p, q, line in zip(counts.tolist(), direct, inverse, result, strict=True):
        for total, table, value in ((source, p, line[0]), (target, q, line[1])):
            expected = (pair + prior * table) / (total + prior)
            assert value == pytest.approx(min(max(expected, SMALLEST_PROBABILITY), 1.0), rel=1e-12)


def test_the_probabilities_of_a_source_add_up_to_1():
    # The three targets of one source in the table.
    counts = np.array([(2, 5, 2), (3, 5, 4), (0, 5, 0)], np.float32)
    result = forced_probabilities(counts, np.array([0.5, 0.25, 0.25]), np.ones(3))
    assert result[:, 0].tolist() == [2.5 / 6, 3.25 / 6, 0.25 / 6]
    assert math.isclose(result[:, 0].sum(), 1)
    assert result[:, 1].tolist() == [1, 4 / 5, 1]


def test_unused_entries_keep_the_probabilities_of_the_table():
    table = np.array([0.0, 1e-9, 0.3, 1.0])
    result = forced_probabilities(np.zeros((4, 3), np.float32), table, table)
    assert result.tolist() == [[p, p] for p in (1e-6, 1e-6, 0.3, 1.0)]


def test_results_for_invalid_probabilities_stay_in_bounds():
    strange = np.array([-5.0, np.inf, -np.inf, 7.0])
    result = forced_probabilities(np.ones((4, 3), np.float32), strange, strange)
    assert result.tolist() == [[p, p] for p in (1e-6, 1, 1e-6, 1)]


@pytest.mark.parametrize(
    ("counts", "direct", "inverse", "prior"),
    [((2, 2), 2, 2, 1), ((2, 3), 3, 3, 1), ((2, 3), 2, 3, 1), ((2, 3), 2, 2, 0), ((2, 3), 2, 2, float("nan"))],
)
def test_invalid_arguments_are_refused(counts, direct, inverse, prior):
    with pytest.raises(ValueError):
        forced_probabilities(np.zeros(counts, np.float32), np.ones(direct), np.ones(inverse), prior)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 1000))
def test_candidate_probabilities_are_the_softmax_of_each_source(sizes, seed):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.normal(0, 30, (offsets[-1], 2)).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = np.nan
    malformed = rng.random(len(values)) < 0.2
    result = candidate_probabilities(values, offsets, malformed)
    for first, last in itertools.pairwise(offsets):
        for c in range(2):
            scored = [i for i in range(first, last) if not malformed[i] and not np.isnan(values[i, c])]
            powers = np.exp(values[scored, c].astype(np.float64))
            assert result[scored, c] == pytest.approx(powers / powers.sum())
            assert all(result[i, c] == 1 for i in range(first, last) if i not in scored)
