"""Ranking and pruning decisions of a table on disk, in parts of a few entries, compared with those in memory."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.pruning.decision import (
    AtThreshold,
    AtThresholdForSize,
    Everything,
    OfSize,
    Ranking,
    Rule,
    decide,
    explain,
)
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import KeepBest, KeepBestWithinBudget
from phrasetool.pruning.ranked_table import RankedTable
from phrasetool.pruning.sizes import TooSmallError
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of
from tests.phrasetool.pruning.measured_tables import on_disk

METHODS = [
    ("composition+semantic+usage", "product"), ("composition*2+usage+random", "product"), ("usage", None),
    ("count+semantic+significance", "rank"), ("composition*3+count", "rank"), ("top+random", "union"),
    ("significance+probability", "intersection"), ("top", None), ("count:1+semantic:0.25", "union"),
    ("semantic:0+significance:a+e", None),
]  # fmt: skip
# Few values, so that there are ties.
VALUES = {
    "probabilities": [0, 0.25, 0.5, 1], "counts": [0, 1, 2, 2.5], "model_scores": [-3, -1, 0], "uses": [0, 0.1, 1, 7],
    "losses": [-1, 0, 0.5, np.inf], "significance": [0, 2.5, 12, np.inf],
}  # fmt: skip


@st.composite
def measured(draw):
    sizes = draw(st.lists(st.integers(1, 5), max_size=8))
    count = sum(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    malformed = rng.random(count) < draw(st.sampled_from([0, 0.2, 1]))
    # All measures of malformed lines are 0.
    columns = {name: np.where(malformed, 0, rng.choice(values, count)) for name, values in VALUES.items()}
    columns["similarities"] = np.where(malformed, 0, rng.choice([-0.5, 0, 0.3, 0.9], (2, count))).T
    columns["scored"] = ~malformed & (rng.random(count) < 0.8)
    return measures_of(np.append(0, np.cumsum(sizes)), rng.integers(1, 4, len(sizes)), malformed, alpha=2.5, **columns)


CUTS = [OfSize(0.4), OfSize(0.9), AtThreshold(Threshold("0.5")), AtThresholdForSize(0.7), Everything()]


@settings(max_examples=150)
@given(
    measured(), st.sampled_from(METHODS), st.sampled_from(CUTS),
    st.integers(0, 2), st.sampled_from(["all", "words", "none"]), st.integers(1, 9),
)  # fmt: skip
def test_disk_and_memory_give_the_same_decision(measures, named, cut, k, protect, part):
    method, best = parse_method(*named), KeepBest(k, protect)
    if method.thresholds:
        cut = Rule.of(method, best).cut
    ranked, ranking = RankedTable(method, on_disk(measures, part)), Ranking.of(method, measures)
    scores = np.concatenate([np.zeros(0, np.float32), *(result.scores for result in ranked.parts())])
    assert scores.tobytes() == ranking.scores.tobytes()
    try:
        expected = decide(ranking, cut, best)
    except TooSmallError as error:
        with pytest.raises(TooSmallError, match=re.escape(str(error))):
            ranked.decide(cut, best)
        return
    result = ranked.decide(cut, best)
    assert len(result) == len(measures)
    np.testing.assert_array_equal(result.keep, expected.keep)
    reasons, expected_reasons = ranked.explain(result), explain(ranking, expected)
    # Blocks of the table may end at any row.
    for rows in (slice(0, len(measures)), slice(1, 4), slice(len(measures) // 2, len(measures))):
        result_part, expected_part = result.part(rows), expected.part(rows)
        np.testing.assert_array_equal(result_part.fails, expected_part.fails)
        np.testing.assert_array_equal(result_part.protected, expected_part.protected)
        assert not result_part.silent.any()
        assert reasons.part(rows).criterion_scores.tobytes() == expected_reasons.part(rows).criterion_scores.tobytes()
        np.testing.assert_array_equal(reasons.part(rows).fails, expected_reasons.part(rows).fails)


@given(measured(), st.sampled_from(["all", "words", "none"]), st.integers(1, 9), st.integers(0, 40))
def test_protection_within_a_budget_is_the_same_on_disk_and_in_memory(measures, protect, part, entries):
    result = KeepBestWithinBudget.of(on_disk(measures, part), protect).best(entries)
    assert result == KeepBestWithinBudget.of(measures, protect).best(entries)
