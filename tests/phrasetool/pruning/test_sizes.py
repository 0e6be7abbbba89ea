import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.pruning.sizes import SizeCurve, SizeLimit, TooSmallError

STRENGTHS = st.lists(st.one_of(st.floats(-1, 1, width=32), st.just(float("inf"))), max_size=60)


@given(STRENGTHS, st.lists(st.floats(-1, 1), max_size=5))
def test_sweep_counts_are_exact(strengths, thresholds):
    curve = SizeCurve([*thresholds, *strengths[:3]])
    for start in range(0, len(strengths), 7):
        curve.add(np.array(strengths[start : start + 7], np.float64))
    assert curve.entries == len(strengths)
    for threshold, count in zip(curve.thresholds, curve.survivors, strict=True):
        assert count == sum(s >= threshold for s in strengths)


@settings(max_examples=150)
@given(STRENGTHS, st.integers(1, 1000))
def test_threshold_for_a_size(strengths, thousandths):
    fraction = thousandths / 1000
    curve = SizeCurve()
    curve.add(np.array(strengths, np.float64))
    always_kept = sum(s == float("inf") for s in strengths)
    if always_kept * 1000 > thousandths * len(strengths):
        with pytest.raises(TooSmallError, match=rf"^{always_kept} of {len(strengths)} entries"):
            curve.threshold_for(fraction)
        return
    threshold = curve.threshold_for(fraction)
    kept = sum(s >= threshold for s in strengths)
    assert kept * 1000 <= thousandths * len(strengths)
    # Any threshold lower by more than a millionth keeps too many entries, or all are kept.
    kept_at_lower = sum(s >= threshold - 2e-6 for s in strengths)
    assert kept == len(strengths) or kept_at_lower * 1000 > thousandths * len(strengths)


@pytest.mark.parametrize(("entries", "fraction", "left"), [(100, 0.29, 29), (100, 0.3, 30), (10, 0.7, 7), (3, 0.5, 1)])
def test_share_that_is_met_exactly(entries, fraction, left):
    strengths = np.linspace(-0.9, 0.9, entries)
    curve = SizeCurve()
    curve.add(strengths)
    assert int((strengths >= curve.threshold_for(fraction)).sum()) == left


def test_failures_are_counted_without_protection():
    curve = SizeCurve([0.0, 0.5])
    curve.add(np.array([np.inf, 0.1, 0.9]), np.array([-0.5, 0.1, 0.9]))
    assert curve.survivors.tolist() == [3, 2]
    assert curve.failing.tolist() == [1, 2]


SCORES = st.one_of(
    st.lists(st.tuples(st.sampled_from([-2.0, -0.0, 0.0, 1.5, np.inf, -np.inf]), st.booleans()), max_size=30),
    st.lists(st.tuples(st.floats(width=32, allow_nan=False), st.booleans()), max_size=30),
)


@given(SCORES, st.integers(0, 31), st.integers(1, 8), st.sampled_from([np.float32, np.float64]))
def test_the_best_unprotected_entries(drawn, count, part, dtype):
    scores = np.array([value for value, _ in drawn], dtype)
    protected = np.array([guarded for _, guarded in drawn], np.bool_)
    parts = [(at, scores[at : at + part], protected[at : at + part]) for at in range(0, len(scores), part)]
    limit = SizeLimit.of(lambda: iter(parts), count)
    rest = np.flatnonzero(~protected).tolist()
    best = sorted(rest, key=lambda i: (-scores[i], i))[:count]
    last = min((scores[i] for i in best), default=np.inf)
    expected = [bool(scores[i] < last) if protected[i] else i not in best for i in range(len(scores))]
    assert limit.fails(scores, protected).tolist() == expected
    assert [mark for at, *pair in parts for mark in limit.fails(*pair, at).tolist()] == expected


def test_parts_that_change():
    parts = [[(0, np.ones(1, np.float32), np.zeros(1, np.bool_))]] * 3 + [[]]
    with pytest.raises(ValueError, match="changed between passes"):
        SizeLimit.of(lambda: parts.pop(0), 1)
