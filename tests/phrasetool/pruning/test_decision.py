from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.pruning.decision import AtThreshold, OfSize, Ranking, Reasons, Rule, decide, explain
from phrasetool.pruning.measures import COUNTS, PROBABILITIES
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.sizes import TooSmallError
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of
from tests.phrasetool.pruning.measured_tables import naive_protection, tables

FEW = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 0.5000001, 1.0])
QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def scored_groups(draw):
    """Draw groups of entries with many exact ties."""
    sizes = draw(st.lists(st.integers(1, 14), max_size=6))
    n = sum(sizes)
    similarities = np.array(draw(st.lists(st.tuples(FEW, FEW), min_size=n, max_size=n)), np.float32).reshape(n, 2)
    malformed = np.array(draw(st.lists(st.sampled_from([False] * 5 + [True]), min_size=n, max_size=n)), np.bool_)
    scored = np.array(draw(st.lists(st.sampled_from([True] * 4 + [False]), min_size=n, max_size=n)), np.bool_)
    lengths = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    return sizes, lengths, similarities, malformed, scored & ~malformed


SEMANTIC = parse_method("semantic")


def by_similarity(similarities, scored, sizes=None, lengths=None, malformed=None):
    sizes = [len(similarities)] if sizes is None else sizes
    lengths = [1] * len(sizes) if lengths is None else lengths
    malformed = np.zeros(len(similarities), np.bool_) if malformed is None else malformed
    offsets = np.append(0, np.cumsum(sizes))
    return Ranking.by_similarity(
        SEMANTIC, measures_of(offsets, lengths, malformed, similarities=similarities, scored=scored)
    )


@settings(max_examples=200)
@given(scored_groups(), st.sampled_from([0, 1, 3, 10]), st.sampled_from(["all", "words", "none"]), FEW)
def test_rule_agrees_with_naive(groups, k, protect, threshold):
    sizes, lengths, similarities, malformed, scored = groups
    offsets = np.append(0, np.cumsum(sizes))
    rule = Rule.of(SEMANTIC, KeepBest(k, protect), threshold=Threshold.of(threshold))
    measures = by_similarity(similarities, scored, sizes, lengths, malformed).measures
    removed = ~rule.decide(rule.ranking(measures)).keep
    expected = set()
    for group, (first, last) in enumerate(pairwise(offsets)):
        good = [i for i in range(first, last) if not malformed[i]]
        ranked = sorted(good, key=lambda i: -(float(similarities[i, 0]) + float(similarities[i, 1])))
        is_protected = protect == "all" or (protect == "words" and lengths[group] == 1)
        for i in good:
            below = similarities[i, 0] < threshold and similarities[i, 1] < threshold
            if scored[i] and below and not (is_protected and i in ranked[:k]):
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


@given(tables(), st.integers(0, 3), st.sampled_from(["all", "words", "none"]), st.sampled_from([-2.0, 0.5, 1.0, 9.0]))
def test_a_threshold_removes_entries_with_lower_scores(table, k, protect, threshold):
    measures, scores = table
    protected = naive_protection(measures, scores, k, protect)
    ranking = Ranking.of(parse_method("count"), measures)
    decision = decide(ranking, AtThreshold(Threshold.of(threshold)), KeepBest(k, protect))
    expected = [bool(scores[i] >= threshold or i in protected) for i in range(len(scores))]
    assert decision.keep.tolist() == expected
    assert (decision.keep == (~decision.fails | decision.protected)).all()


@given(tables(), st.integers(0, 3), st.sampled_from(["all", "words", "none"]), st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_a_size_fills_up_with_the_best(table, k, protect, size):
    measures, scores = table
    protected = naive_protection(measures, scores, k, protect)
    allowed = int(size * len(scores) + 1e-9)
    ranking = Ranking.of(parse_method("count"), measures)
    if len(protected) > allowed:
        with pytest.raises(TooSmallError, match="are kept at any threshold"):
            decide(ranking, OfSize(size), KeepBest(k, protect))
        return
    rest = sorted((i for i in range(len(scores)) if i not in protected), key=lambda i: (-scores[i], i))
    expected = protected | set(rest[: allowed - len(protected)])
    decision = decide(ranking, OfSize(size), KeepBest(k, protect))
    assert set(np.flatnonzero(decision.keep).tolist()) == expected
    assert (decision.keep == (~decision.fails | decision.protected)).all()


def test_one_of_threshold_and_size():
    request = {"threshold": Threshold("0.5"), "size": 0.5}
    for method, arguments in (("count", {}), ("count", request), ("count:1", {"size": 0.5})):
        with pytest.raises(ValueError, match="expected a threshold or a size"):
            Rule.of(parse_method(method, None), KeepBest(), **arguments)


@st.composite
def scored_tables(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    count = sum(sizes)
    counts, probabilities = (
        np.array(draw(st.lists(QUARTERS, min_size=count, max_size=count)), np.float32) for _ in range(2)
    )
    malformed = np.array(draw(st.lists(st.sampled_from([False] * 4 + [True]), min_size=count, max_size=count)), bool)
    return measures_of(np.append(0, np.cumsum(sizes)), [1] * len(sizes), malformed, probabilities, counts)


def naive_best(values, rest, count):
    """Return the `count` best of the entries `rest`, ties in table order."""
    return sorted(rest, key=lambda i: (-values[i], i))[:count]


@given(
    scored_tables(), st.integers(0, 2), st.sampled_from([0.4, 0.7, 1.0]), st.sampled_from(["product", "rank", "union"])
)
def test_reasons_compare_criteria_that_keep_the_same_number_alone(measures, k, size, combine):
    method = parse_method("count+probability", combine)
    try:
        rule = Rule.of(method, KeepBest(k), size=size)
        ranking = rule.ranking(measures)
        decision = rule.decide(ranking)
    except TooSmallError:
        return
    reasons = explain(ranking, decision)
    rest = np.flatnonzero(~decision.protected).tolist()
    kept = int(decision.keep[rest].sum())
    for column, plain in enumerate((measures[COUNTS], measures[PROBABILITIES])):
        values = np.where(measures.malformed, np.inf, plain)
        best = naive_best(values, rest, kept)
        last = min((values[i] for i in best), default=np.inf)
        for i in range(len(measures)):
            assert reasons.fails[i, column] != (i in best if i in rest else values[i] >= last)
            assert reasons.criterion_scores[i, column] == values[i]


@given(scored_tables(), st.sampled_from(["intersection", "union"]))
def test_reasons_follow_the_thresholds_of_the_criteria(measures, combine):
    method = parse_method("count:0.5+probability:0.3", combine)
    rule = Rule.of(method, KeepBest(0))
    ranking = rule.ranking(measures)
    decision = rule.decide(ranking)
    reasons = explain(ranking, decision)
    good = ~measures.malformed
    assert reasons.fails[:, 0].tolist() == (good & (measures[COUNTS] < 0.5)).tolist()
    assert reasons.fails[:, 1].tolist() == (good & (measures[PROBABILITIES] < np.float32(0.3))).tolist()
    counts = reasons.part(~decision.keep).counts()
    assert sum(counts.values()) == int((~decision.keep).sum())
    if combine == "union":
        assert set(counts) <= {"count+probability"}
    assert "together" not in counts


def test_labels():
    fails = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]], bool)
    reasons = Reasons(("a", "b", "c"), np.zeros((5, 3), np.float32), fails)
    assert [reasons.labels[code] for code in reasons.codes] == ["a", "b+c", "together", "a+b+c", "a"]
    assert reasons.counts() == {"together": 1, "a": 2, "b+c": 1, "a+b+c": 1}
    assert reasons.part(slice(1, 3)).counts() == {"b+c": 1, "together": 1}
    assert reasons.part(np.zeros(5, bool)).counts() == {}
