from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pruning.protection import KeepBest, KeepBestWithinBudget, best_of_groups
from phrasetool.pruning.thresholds import Threshold
from tests.phrasetool.pruning.measured_tables import naive_protection, tables


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=6)),
    st.integers(0, 4),
)
def test_best_of_groups(groups, count):
    offsets = np.cumsum([0, *map(len, groups)])
    entries = [entry for group in groups for entry in group]
    keys, eligible = (np.array([entry[k] for entry in entries], kind) for k, kind in ((0, float), (1, bool)))
    expected = set()
    for first, last in pairwise(offsets):
        ranked = sorted((i for i in range(first, last) if eligible[i]), key=lambda i: (-keys[i], i))
        expected |= set(ranked[:count])
    assert set(np.flatnonzero(best_of_groups(offsets, keys, count, eligible))) == expected


@pytest.mark.parametrize(("k", "protect", "message"), [(-1, "all", "best -1"), (1, "some", "unknown protection")])
def test_invalid_rules_are_refused(k, protect, message):
    with pytest.raises(ValueError, match=message):
        KeepBest(k, protect)
    with pytest.raises(ValueError, match="not NaN"):
        Threshold.of(float("nan"))


@pytest.mark.parametrize(
    ("best", "text"),
    [(KeepBest(1, "words"), "the best of every one-word source"), (KeepBest(3, "all"), "the 3 best of every source")],
)
def test_description(best, text):
    assert best.words == text


@given(tables(), st.sampled_from(["all", "words", "none"]), st.integers(0, 12), st.randoms())
def test_sources_that_are_kept_completely_do_not_depend_on_the_ranking(table, protect, k, random):
    measures, _ = table
    best = KeepBest(k, protect)
    groups = measures.group_offsets, measures.source_lengths
    always_kept = np.repeat(best.keeps_everything(*groups), np.diff(measures.group_offsets))
    keys = np.array([random.random() for _ in always_kept])
    assert (best.marks(*groups, measures.malformed, keys) | measures.malformed)[always_kept].all()
    # Of other sources, which have more valid entries than k, the last one may be removed.
    good = ~measures.malformed
    for i in np.flatnonzero(good & ~always_kept):
        if (group := np.searchsorted(groups[0], i, "right") - 1) >= 0 and good[
            slice(*groups[0][group : group + 2])
        ].all():
            keys[i] = -1
            assert not best.marks(*groups, measures.malformed, keys)[i]
            keys[i] = random.random()


@given(tables(), st.sampled_from(["all", "words", "none"]), st.integers(0, 30))
def test_protection_within_a_budget(table, protect, entries):
    measures, scores = table
    counts = {k: len(naive_protection(measures, scores, k, protect)) for k in range(1, 11)}
    affordable = KeepBestWithinBudget.of(measures, protect)
    assert affordable.best(entries) == KeepBest(max([1, *(k for k in counts if 5 * counts[k] <= 3 * entries)]), protect)
