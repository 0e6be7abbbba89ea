"""Precision, recall and the best threshold, compared with a trial of every threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.bitext.mining_quality import best_threshold, evaluate_mining
from tests.naive_mining import f1_from

PAIR = st.tuples(st.integers(0, 4), st.integers(0, 4))
MINED = st.lists(st.tuples(st.integers(0, 6).map(float), PAIR), max_size=15)


@settings(max_examples=200, deadline=None)
@given(MINED, st.sets(PAIR, min_size=1, max_size=8))
def test_against_every_threshold(mined, gold):
    scores, pairs = np.array([score for score, _ in mined]), [pair for _, pair in mined]
    result = evaluate_mining(scores, pairs, gold)
    expected = max((f1_from(scores, pairs, gold, threshold) for threshold in scores), default=0.0)
    assert (result.best.f1 if result.best else 0.0) == pytest.approx(expected)
    assert result.all.f1 == pytest.approx(f1_from(scores, pairs, gold, -1))
    for point in result.curve:
        assert point.f1 == pytest.approx(f1_from(scores, pairs, gold, point.threshold))
    threshold = best_threshold(scores, pairs, gold)
    assert f1_from(scores, pairs, gold, threshold) == pytest.approx(expected)


def test_accuracy_at_1():
    gold = {(1, 1), (2, 2), (3, 3)}
    result = evaluate_mining(np.array([0.5, 0.9, 0.8]), [(1, 1), (1, 2), (2, 2)], gold)
    assert result.accuracy_at_1 == pytest.approx(1 / 3)


def test_the_threshold_lies_between_scores():
    assert best_threshold(np.array([0.9, 0.5, 0.1]), [(1, 1), (2, 2), (3, 4)], {(1, 1), (2, 2)}) == pytest.approx(0.3)
    # No pair is correct, so the threshold is above all scores.
    assert best_threshold(np.array([0.9]), [(1, 2)], {(1, 1)}) > 0.9


def test_a_long_curve_keeps_its_ends():
    scores = np.arange(1000.0)
    result = evaluate_mining(scores, [(i, i) for i in range(1000)], {(0, 0)}, points=10)
    assert len(result.curve) == 10
    assert (result.curve[0].threshold, result.curve[-1].threshold) == (999.0, 0.0)
    with pytest.raises(ValueError, match="gold"):
        evaluate_mining(scores, [(i, i) for i in range(1000)], set())
