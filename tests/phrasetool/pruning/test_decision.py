from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.pruning.decision import AtThreshold, Ranking, Rule, decide
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import SizeCurve, TooSmallError
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of

FEW = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 0.5000001, 1.0])


@st.composite
def scored_groups(draw):
    """Groups of entries with many exact ties."""
    sizes = draw(st.lists(st.integers(1, 14), max_size=6))
    n = sum(sizes)
    similarities = np.array(draw(st.lists(st.tuples(FEW, FEW), min_size=n, max_size=n)), np.float32).reshape(n, 2)
    faulty = np.array(draw(st.lists(st.sampled_from([False] * 5 + [True]), min_size=n, max_size=n)), np.bool_)
    opinion = np.array(draw(st.lists(st.sampled_from([True] * 4 + [False]), min_size=n, max_size=n)), np.bool_)
    lengths = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    return sizes, lengths, similarities, faulty, opinion & ~faulty


SEMANTIC = parse_method("semantic")


def by_similarity(similarities, opinion, sizes=None, lengths=None, faulty=None):
    sizes = [len(similarities)] if sizes is None else sizes
    lengths = [1] * len(sizes) if lengths is None else lengths
    faulty = np.zeros(len(similarities), np.bool_) if faulty is None else faulty
    offsets = np.append(0, np.cumsum(sizes))
    return Ranking.by_similarity(
        SEMANTIC, measures_of(offsets, lengths, faulty, similarities=similarities, opinion=opinion)
    )


@settings(max_examples=200)
@given(scored_groups(), st.sampled_from([0, 1, 3, 10]), st.sampled_from(["all", "words", "none"]), FEW)
def test_rule_agrees_with_naive(groups, k, protect, threshold):
    sizes, lengths, similarities, faulty, opinion = groups
    offsets = np.append(0, np.cumsum(sizes))
    rule = Rule.of(SEMANTIC, KeepBest(k, protect), threshold=Threshold.of(threshold))
    removed = ~rule.decide(by_similarity(similarities, opinion, sizes, lengths, faulty).measures).keep
    expected = set()
    for group, (first, last) in enumerate(pairwise(offsets)):
        good = [i for i in range(first, last) if not faulty[i]]
        ranked = sorted(good, key=lambda i: -(float(similarities[i, 0]) + float(similarities[i, 1])))
        shielded = protect == "all" or (protect == "words" and lengths[group] == 1)
        for i in good:
            below = similarities[i, 0] < threshold and similarities[i, 1] < threshold
            if opinion[i] and below and not (shielded and i in ranked[:k]):
                expected.add(i)
    assert set(np.flatnonzero(removed).tolist()) == expected


def test_both_similarities_must_be_below():
    nothing = KeepBest(0)
    similarities = [[0.4, 0.6], [0.6, 0.4], [0.4, 0.4], [0.5, 0.5]]
    ranking = by_similarity(similarities, [True] * 4)
    assert decide(ranking, AtThreshold(Threshold("0.5")), nothing).fails.tolist() == [False, False, True, False]
    np.testing.assert_allclose(ranking.strengths(nothing), [0.6, 0.6, 0.4, 0.5], rtol=1e-7)
    silent = by_similarity(similarities, [False] * 4)
    decision = decide(silent, AtThreshold(Threshold("2.0")), nothing)
    assert not decision.fails.any()
    assert decision.silent.all()
    assert np.isinf(silent.strengths(nothing)).all()


def test_ties_are_kept_in_table_order():
    ranking = by_similarity(np.full((40, 2), 0.25), [True] * 40)
    for k in (1, 10, 39, 40, 100):
        assert np.flatnonzero(ranking.protected(KeepBest(k))).tolist() == list(range(min(k, 40)))


@pytest.mark.parametrize(("k", "protect", "message"), [(-1, "all", "best -1"), (1, "some", "unknown protection")])
def test_rules_that_make_no_sense(k, protect, message):
    with pytest.raises(ValueError, match=message):
        KeepBest(k, protect)
    with pytest.raises(ValueError, match="not NaN"):
        Threshold.of(float("nan"))


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
    immortal = sum(s == float("inf") for s in strengths)
    if immortal * 1000 > thousandths * len(strengths):
        with pytest.raises(TooSmallError, match=rf"^{immortal} of {len(strengths)} entries"):
            curve.threshold_for(fraction)
        return
    threshold = curve.threshold_for(fraction)
    left = sum(s >= threshold for s in strengths)
    assert left * 1000 <= thousandths * len(strengths)
    # Any threshold lower by more than a millionth leaves too many, or all are left.
    more = sum(s >= threshold - 2e-6 for s in strengths)
    assert left == len(strengths) or more * 1000 > thousandths * len(strengths)


@pytest.mark.parametrize(("entries", "fraction", "left"), [(100, 0.29, 29), (100, 0.3, 30), (10, 0.7, 7), (3, 0.5, 1)])
def test_share_that_is_met_exactly(entries, fraction, left):
    strengths = np.linspace(-0.9, 0.9, entries)
    curve = SizeCurve()
    curve.add(strengths)
    assert int((strengths >= curve.threshold_for(fraction)).sum()) == left


def test_statistics_add_up():
    total = PruneStatistics()
    lengths = np.array([1, 1, 2, 7, 8, 9, 30, 0])
    keep = np.array([1, 0, 1, 1, 0, 1, 1, 1], np.bool_)
    for _ in range(2):
        part = PruneStatistics(8, 5, 6, {"a": 1, "b": 1}, 3, 2, 0, 0)
        part.count_lengths(lengths, keep)
        total += part
    report = total.as_dict("model:x")
    assert report["schema_version"] == 1
    assert report["signature"] == "model:x"
    assert (report["entries"], report["sources"], report["kept"]) == (16, 10, 12)
    assert report["kept_share"] == 0.75
    assert report["removed"] == {"a": 2, "b": 2}
    assert report["protected_by_best_k"] == 6
    assert report["without_opinion"] == 4
    assert report["by_source_length"] == {
        "0": {"entries": 2, "kept": 2},
        "1": {"entries": 4, "kept": 2},
        "2": {"entries": 2, "kept": 2},
        "7": {"entries": 2, "kept": 2},
        "8+": {"entries": 6, "kept": 4},
    }


def test_statistics_of_nothing():
    assert PruneStatistics().as_dict("")["kept_share"] == 1.0
