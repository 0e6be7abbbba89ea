"""Why entries go."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pruning.decision import Rule
from phrasetool.pruning.measures import COUNTS, PROBABILITIES
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest
from phrasetool.pruning.reasons import Reasons, explain
from phrasetool.pruning.sizes import TooSmallError
from tests.measures import measures_of

FEW = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    count = sum(sizes)
    counts, probabilities = (
        np.array(draw(st.lists(FEW, min_size=count, max_size=count)), np.float32) for _ in range(2)
    )
    faulty = np.array(draw(st.lists(st.sampled_from([False] * 4 + [True]), min_size=count, max_size=count)), bool)
    return measures_of(np.append(0, np.cumsum(sizes)), [1] * len(sizes), faulty, probabilities, counts)


def naive_best(values, rest, count):
    """The `count` best of the entries `rest`, ties by table order."""
    return sorted(rest, key=lambda i: (-values[i], i))[:count]


@given(tables(), st.integers(0, 2), st.sampled_from([0.4, 0.7, 1.0]), st.sampled_from(["product", "rank", "union"]))
def test_alone_a_criterion_would_keep_as_many(measures, k, size, combine):
    method = parse_method("count+probability", combine)
    try:
        rule = Rule.of(method, KeepBest(k), size=size)
        ranking = rule.ranking(measures)
        decision = rule.decide(ranking)
    except TooSmallError:
        return
    reasons = explain(ranking, decision)
    rest = np.flatnonzero(~decision.protected).tolist()
    stay = int(decision.keep[rest].sum())
    for column, plain in enumerate((measures[COUNTS], measures[PROBABILITIES])):
        values = np.where(measures.faulty, np.inf, plain)
        best = naive_best(values, rest, stay)
        last = min((values[i] for i in best), default=np.inf)
        for i in range(len(measures)):
            assert reasons.fails[i, column] != (i in best if i in rest else values[i] >= last)
            assert reasons.worths[i, column] == values[i]


@given(tables(), st.sampled_from(["intersection", "union"]))
def test_thresholds_of_their_own_say_it_themselves(measures, combine):
    method = parse_method("count:0.5+probability:0.3", combine)
    rule = Rule.of(method, KeepBest(0))
    ranking = rule.ranking(measures)
    decision = rule.decide(ranking)
    reasons = explain(ranking, decision)
    good = ~measures.faulty
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
