import numpy as np
import pytest

from phrasetool.smt.extraction.smoothing import GoodTuring, JointCounts, KneserNey, PairStatistics, smoothing_of


def statistics(*by_count):
    return PairStatistics(100, np.array([0, *by_count] + [0] * (10 - len(by_count))))


def test_good_turing_by_hand():
    """N1..N4 = 60, 20, 10, 4."""
    left = GoodTuring(statistics(60, 20, 10, 4)).discounts
    assert left[1] == pytest.approx(2 * 20.1 / 60.1)
    assert left[2] == pytest.approx(1.5 * 10.1 / 20.1)
    # 4/3 * 4.1/10.1 = 0.541 would be a lower discount than that of 2.
    assert left[3] == left[2]
    # 6/5 * 0.1/0.1 is more than the whole.
    assert left[5] == 1.0
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
    """No pair was seen twice: the discounts are the caps, and a count stays above zero."""
    method = KneserNey(statistics(60))
    assert method.discounts.tolist() == pytest.approx([0.9, 1.9, 2.9])
