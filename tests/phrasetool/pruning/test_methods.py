"""Criteria, their combination, and the decision about all entries of a table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from phrasetool.pruning.measures import Measures
from phrasetool.pruning.methods import NAMES, parse_method
from phrasetool.pruning.selection import KeepBest, select_entries
from phrasetool.pruning.sizes import TooSmallError

# Two sources of one and two words, with three and two entries, the last one faulty.
MEASURES = Measures(
    group_offsets=np.array([0, 3, 5]),
    source_lengths=np.array([1, 2]),
    faulty=np.array([False, False, False, False, True]),
    probabilities=np.array([0.5, 0.25, 0.25, 1.0, 0.0], np.float32),
    counts=np.array([2, 1, 1, 4, 0], np.float32),
    model_scores=np.array([-1, -3, -2, -1, 0], np.float32),
    similarities=np.array([[0.5, 0.7], [-0.4, 0.2], [0.9, 0.9], [0.1, 0.3], [0, 0]], np.float32),
    opinion=np.array([True, True, False, True, False]),
    significance=np.array([30, 5, 0, 12, 0], np.float32),
    losses=np.array([0.5, np.inf, -2.0, 7.0, 0.0], np.float32),
)
FAULTY = np.inf

WORTHS = {
    "semantic": [0.7, 0.2, np.inf, 0.3, FAULTY],
    "significance": [30, 5, 0, 12, FAULTY],
    "composition": [1, 30, -2, 28, FAULTY],
    "probability": [0.5, 0.25, 0.25, 1, FAULTY],
    "count": [2, 1, 1, 4, FAULTY],
    "top": [0, -2, -1, 0, FAULTY],
}
FACTORS = {
    "semantic": [0.36, 0.0004, 1, 0.04],
    "significance": [2, 0.5, 0.02, 1.2],
    "composition": [1, 3, 0, 12],
    "probability": [0.5, 0.25, 0.25, 1],
    "count": [2, 1, 1, 4],
    "top": [1, 1 / 3, 1 / 2, 1],
}


@pytest.mark.parametrize("name", sorted(WORTHS))
def test_worth_and_factor(name):
    method = parse_method(name)
    worth = method.worth(MEASURES)
    assert worth.dtype == np.float32
    np.testing.assert_allclose(worth, WORTHS[name], rtol=1e-6)
    factor = method.parts[0].factor(MEASURES)
    assert factor.dtype == np.float32
    np.testing.assert_allclose(factor[:4], FACTORS[name], rtol=1e-5)


def test_random_is_fixed_by_its_seed():
    first, same, other = (parse_method("random", seed=seed).worth(MEASURES) for seed in (1, 1, 2))
    assert first.tolist() == same.tolist() != other.tolist()
    assert ((first[:4] >= 0) & (first[:4] < 1)).all()


@pytest.mark.parametrize("names", [("composition", "semantic"), ("count", "probability", "significance")])
def test_a_product_is_one_of_factors(names):
    method = parse_method(" + ".join(names))
    expected = np.prod([FACTORS[name] for name in names], axis=0)
    np.testing.assert_allclose(method.worth(MEASURES)[:4], expected, rtol=1e-5)
    assert method.worth(MEASURES)[4] == FAULTY
    assert method.name == f"{'+'.join(names)}(product)"


def test_a_rank_is_the_mean_of_ranks():
    names = ("semantic", "count")
    # The faulty entry has no rank.
    ranks = [(rankdata(parse_method(name).worth(MEASURES)[:4]) - 1) / 3 for name in names]
    found = parse_method("+".join(names), "rank").worth(MEASURES)
    np.testing.assert_allclose(found, [*np.mean(ranks, axis=0), FAULTY], rtol=1e-6)


def test_what_has_to_be_measured():
    assert parse_method("composition+semantic").needs == {"composition", "similarities"}
    assert parse_method("count").needs == set()
    without = Measures(MEASURES.group_offsets, MEASURES.source_lengths, MEASURES.faulty, MEASURES.probabilities,
                       MEASURES.counts)  # fmt: skip
    for name in ("semantic", "significance", "composition", "top"):
        with pytest.raises(ValueError, match="measured without its"):
            parse_method(name).worth(without)


@pytest.mark.parametrize(
    ("text", "combine", "message"),
    [
        ("semantics", "product", "unknown criterion 'semantics'; did you mean semantic"),
        ("xyz", "product", f"unknown criterion 'xyz' .there are {', '.join(NAMES)}"),
        ("", "product", "unknown criterion ''"),
        ("count+count", "product", "count stands twice"),
        ("count", "sum", "unknown combination 'sum'; expected one of product, rank"),
    ],
)
def test_methods_that_are_none(text, combine, message):
    with pytest.raises(ValueError, match=message):
        parse_method(text, combine)


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 5), max_size=6))
    count = sum(sizes)
    worth = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0, np.inf]), min_size=count, max_size=count))
    faulty = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    lengths = draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes)))
    nothing = np.zeros(count, np.float32)
    measures = Measures(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.array(lengths, np.int64),
        np.array(faulty, bool), nothing, nothing,
    )  # fmt: skip
    return measures, np.array(worth, np.float32)


def naive_protection(measures, worth, k, protect):
    """The k best of every protected source, and faulty lines."""
    protected = set(np.flatnonzero(measures.faulty).tolist())
    for group, length in enumerate(measures.source_lengths):
        if protect == "none" or (protect == "words" and length != 1):
            continue
        first, last = measures.group_offsets[group : group + 2]
        good = [i for i in range(first, last) if not measures.faulty[i]]
        if last - first <= k:
            protected.update(good)
        protected.update(sorted(good, key=lambda i: (-worth[i], i))[:k])
    return protected


@given(tables(), st.integers(0, 3), st.sampled_from(["all", "words", "none"]), st.sampled_from([-2.0, 0.5, 1.0, 9.0]))
def test_a_threshold_removes_what_is_worth_less(table, k, protect, threshold):
    measures, worth = table
    protected = naive_protection(measures, worth, k, protect)
    selection = select_entries(measures, worth, KeepBest(k, protect), threshold=threshold)
    expected = [bool(worth[i] >= threshold or i in protected) for i in range(len(worth))]
    assert selection.keep.tolist() == expected
    assert (selection.keep == (~selection.fails | selection.protected)).all()


@given(tables(), st.integers(0, 3), st.sampled_from(["all", "words", "none"]), st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_a_size_fills_up_with_the_best(table, k, protect, size):
    measures, worth = table
    protected = naive_protection(measures, worth, k, protect)
    allowed = int(size * len(worth) + 1e-9)
    if len(protected) > allowed:
        with pytest.raises(TooSmallError, match="are kept at any threshold"):
            select_entries(measures, worth, KeepBest(k, protect), size=size)
        return
    rest = sorted((i for i in range(len(worth)) if i not in protected), key=lambda i: (-worth[i], i))
    expected = protected | set(rest[: allowed - len(protected)])
    selection = select_entries(measures, worth, KeepBest(k, protect), size=size)
    assert set(np.flatnonzero(selection.keep).tolist()) == expected
    assert (selection.keep == (~selection.fails | selection.protected)).all()


def test_one_of_threshold_and_size():
    for given_ in ({}, {"threshold": 0.5, "size": 0.5}):
        with pytest.raises(ValueError, match="expected a threshold or a size"):
            select_entries(MEASURES, MEASURES.counts, KeepBest(), **given_)
