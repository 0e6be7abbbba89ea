"""Criteria, their combination, and the decision about all entries of a table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from phrasetool.pruning.decision import AtThreshold, OfSize, Ranking, Rule, decide
from phrasetool.pruning.measures import COUNTS, LOSSES, PROBABILITIES, SIMILARITIES, USES, Measures
from phrasetool.pruning.methods import COMBINATIONS, NAMES, parse_method
from phrasetool.pruning.protection import AffordableBest, KeepBest
from phrasetool.pruning.sizes import TooSmallError
from phrasetool.pruning.thresholds import Threshold
from tests.measures import measures_of

# Two sources of one and two words, with three and two entries, the last one faulty.
MEASURES = measures_of(
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
    uses=np.array([5, 0, 1, 0, 0], np.float32),
)
FAULTY = np.inf

WORTHS = {
    "semantic": [0.7, 0.2, np.inf, 0.3, FAULTY],
    "significance": [30, 5, 0, 12, FAULTY],
    "composition": [1, 30, -2, 28, FAULTY],
    "usage": [5, 0, 1, 0, FAULTY],
    "probability": [0.5, 0.25, 0.25, 1, FAULTY],
    "count": [2, 1, 1, 4, FAULTY],
    "top": [0, -2, -1, 0, FAULTY],
}
FACTORS = {
    "semantic": [0.6, 0.02, 1, 0.2],
    "significance": [2, 0.5, 0.02, 1.2],
    "composition": [1, 1, 0.3, 4],
    # Six uses of eight extracted pairs: 0.75 for each.
    "usage": [5.75 / 3, 0.75 / 2, 1.75 / 2, 0.75 / 5],
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


def test_usage_of_a_table_that_was_never_used_or_extracted():
    nothing = np.zeros(5, np.float32)
    for measure in (USES, COUNTS):
        measures = MEASURES.with_columns({measure: nothing})
        factor = parse_method("usage").parts[0].factor(measures)
        assert factor.tolist() == measures[USES].tolist()


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


SEVERAL = st.lists(st.sampled_from([name for name in NAMES if name != "random"]), min_size=2, max_size=4, unique=True)
WEIGHT = st.sampled_from(["0.5", "1", "2", "3.25"])


@given(SEVERAL, st.sampled_from(COMBINATIONS), st.randoms())
def test_the_order_of_names_changes_nothing(names, combine, rng):
    weights = {name: rng.choice(["", "*1", "*2", "*0.3"]) if combine in ("product", "rank") else "" for name in names}
    texts = [name + weights[name] for name in names]
    one, other = (parse_method("+".join(order), combine).worth(MEASURES) for order in (texts, texts[::-1]))
    assert one.tolist() == other.tolist()


@given(SEVERAL, st.sampled_from(["product", "rank"]), st.sampled_from(["1", "1.0", "01e0"]))
def test_weights_of_one_are_none(names, combine, one):
    plain, weighted = parse_method("+".join(names), combine), parse_method(f"*{one}+".join(names) + f"*{one}", combine)
    assert plain.worth(MEASURES).tolist() == weighted.worth(MEASURES).tolist()
    assert plain.name == weighted.name


@given(SEVERAL, st.data())
def test_weights_are_exponents_in_a_product_and_weights_in_a_mean_of_ranks(names, data):
    weights = [float(data.draw(WEIGHT)) for _ in names]
    text = "+".join(f"{name}*{weight:g}" for name, weight in zip(names, weights, strict=True))
    expected = np.prod([np.array(FACTORS[name]) ** weight for name, weight in zip(names, weights, strict=True)], axis=0)
    np.testing.assert_allclose(parse_method(text).worth(MEASURES)[:4], expected, rtol=1e-4)
    ranks = [(rankdata(WORTHS[name][:4]) - 1) / 3 for name in names]
    expected = np.average(ranks, axis=0, weights=weights)
    np.testing.assert_allclose(parse_method(text, "rank").worth(MEASURES)[:4], expected, rtol=1e-5, atol=1e-7)


def test_large_powers_stay_finite():
    measures = MEASURES.with_columns({COUNTS: np.array([3e9, 1, 0, 1, 0], np.float32)})
    worth = parse_method("count*10+probability*10").worth(measures)
    assert np.isfinite(worth[:4]).all()
    assert worth[0] > worth[3] > worth[2] == 0


@given(SEVERAL)
def test_what_all_keep_is_part_of_what_any_keeps(names):
    """At one rank, each criterion keeps the entries of at least that rank."""
    ranks = {name: ((rankdata(WORTHS[name][:4]) - 1) / 3).astype(np.float32) for name in names}
    both, any_ = (parse_method("+".join(names), combine).worth(MEASURES)[:4] for combine in ("intersection", "union"))
    for cut in np.float32([0, 1 / 6, 1 / 3, 0.5, 2 / 3, 1]):
        alone = [set(np.flatnonzero(ranks[name] >= cut)) for name in names]
        assert set(np.flatnonzero(both >= cut)) == set.intersection(*alone)
        assert set(np.flatnonzero(any_ >= cut)) == set.union(*alone)


@given(SEVERAL, st.data())
def test_thresholds_of_their_own(names, data):
    limits = [data.draw(st.sampled_from([-2.0, 0.0, 0.25, 0.3, 1.0, 2.0, 12.0])) for _ in names]
    text = "+".join(f"{name}:{limit:g}" for name, limit in zip(names, limits, strict=True))
    alone = [
        {i for i in range(4) if np.float32(WORTHS[name][i]) < np.float32(limit)}
        for name, limit in zip(names, limits, strict=True)
    ]
    for combine, gone in (("intersection", set.union(*alone)), ("union", set.intersection(*alone))):
        method = parse_method(text, combine)
        fails = method.fails(method.below(method.worths(MEASURES), MEASURES.alpha))
        assert set(np.flatnonzero(fails)) == gone
        assert parse_method(method.name.removesuffix(f"({combine})"), combine) == method


@pytest.mark.parametrize(
    ("text", "limit"), [("a+e", 5.001), ("a-e", 4.999), ("5", 5.0), ("1e+1", 10.0), ("1e-2", 0.01)]
)
def test_thresholds_of_significance(text, limit):
    measures = replace(MEASURES, alpha=5.0)
    method = parse_method(f"count:2+significance:{text}+semantic:-1", None)
    assert (method.combine, method.names) == ("intersection", ("count", "significance", "semantic"))
    assert method.thresholds[1].value(5.0) == pytest.approx(limit)
    assert method.below(method.worths(measures), 5.0)[:4, 1].tolist() == [worth < limit for worth in (30, 5, 0, 12)]
    # One sentence pair.
    assert parse_method("significance:a-e").thresholds[0].value(0.0) == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" composition*2 + semantic ", "composition*2+semantic(product)"),
        ("composition*1+semantic*1", "composition+semantic(product)"),
        ("significance:a+e", "significance:a+e"),
        ("significance:a-e+semantic:.5", "significance:a-e+semantic:.5(intersection)"),
    ],
)
def test_names(text, name):
    assert parse_method(text, None).name == name


def test_what_has_to_be_measured():
    assert parse_method("composition+semantic").needs == {LOSSES, SIMILARITIES}
    assert parse_method("composition+usage").needs == {LOSSES, USES}
    assert parse_method("count").needs == set()
    counted = {measure: MEASURES[measure] for measure in (PROBABILITIES, COUNTS)}
    without = Measures(MEASURES.group_offsets, MEASURES.source_lengths, MEASURES.faulty, counted)
    for name in ("semantic", "significance", "composition", "usage", "top"):
        with pytest.raises(ValueError, match="measured without its"):
            parse_method(name).worth(without)


@pytest.mark.parametrize(
    ("text", "combine", "message"),
    [
        ("semantics", "product", "unknown criterion 'semantics'; did you mean semantic"),
        ("xyz", "product", f"unknown criterion 'xyz' .there are {', '.join(NAMES)}"),
        ("", "product", "unknown criterion ''"),
        ("count+count", "product", "count stands twice"),
        ("count", "sum", "unknown combination 'sum'; expected one of product, rank, intersection, union"),
        ("count*x+top", "product", "the weight 'x' of count is not a number above 0, at most 10"),
        ("count*0+top", "product", "the weight '0' of count"),
        ("count*-1+top", "rank", "the weight '-1' of count"),
        ("count*11+top", "rank", "the weight '11' of count"),
        ("count*nan+top", "rank", "the weight 'nan' of count"),
        ("count*+top", "rank", "the weight '' of count"),
        ("count*2", "product", "one criterion needs no weight"),
        ("count*2+top", "intersection", "weights mean nothing to an intersection"),
        ("count*2+top", "union", "weights mean nothing to a union"),
        ("count:2+top", None, "top has no threshold, but others have"),
        ("count:2+top:0", "product", "are an intersection or a union, not a product"),
        ("count:2+top:0", "rank", "not a rank"),
        ("count:x", None, "the threshold of count: 'x' is not a number, a.e or a-e"),
        ("count:nan", None, "the threshold of count: .* not NaN"),
        ("count:", None, "the threshold of count: '' is not a number"),
        ("count:a+e", None, "a.e is a threshold of significance, not of count"),
        ("count:2*3+top", None, "the threshold of count: '2.3'"),
        ("significance:a+e+significance:2", None, "significance stands twice"),
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
    worth = np.where(faulty, np.inf, worth).astype(np.float32)
    measures = measures_of(np.append(0, np.cumsum(sizes)), lengths, np.array(faulty, bool), counts=worth)
    return measures, worth


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
    ranking = Ranking.of(parse_method("count"), measures)
    decision = decide(ranking, AtThreshold(Threshold.of(threshold)), KeepBest(k, protect))
    expected = [bool(worth[i] >= threshold or i in protected) for i in range(len(worth))]
    assert decision.keep.tolist() == expected
    assert (decision.keep == (~decision.fails | decision.protected)).all()


@given(tables(), st.integers(0, 3), st.sampled_from(["all", "words", "none"]), st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_a_size_fills_up_with_the_best(table, k, protect, size):
    measures, worth = table
    protected = naive_protection(measures, worth, k, protect)
    allowed = int(size * len(worth) + 1e-9)
    ranking = Ranking.of(parse_method("count"), measures)
    if len(protected) > allowed:
        with pytest.raises(TooSmallError, match="are kept at any threshold"):
            decide(ranking, OfSize(size), KeepBest(k, protect))
        return
    rest = sorted((i for i in range(len(worth)) if i not in protected), key=lambda i: (-worth[i], i))
    expected = protected | set(rest[: allowed - len(protected)])
    decision = decide(ranking, OfSize(size), KeepBest(k, protect))
    assert set(np.flatnonzero(decision.keep).tolist()) == expected
    assert (decision.keep == (~decision.fails | decision.protected)).all()


@given(tables(), st.sampled_from(["all", "words", "none"]), st.integers(0, 30))
def test_protection_that_there_is_room_for(table, protect, entries):
    measures, worth = table
    counts = {k: len(naive_protection(measures, worth, k, protect)) for k in range(1, 11)}
    affordable = AffordableBest(measures, protect)
    assert affordable.best(entries) == KeepBest(max([1, *(k for k in counts if 5 * counts[k] <= 3 * entries)]), protect)


def test_one_of_threshold_and_size():
    asked = {"threshold": Threshold("0.5"), "size": 0.5}
    for method, given_ in (("count", {}), ("count", asked), ("count:1", {"size": 0.5})):
        with pytest.raises(ValueError, match="expected a threshold or a size"):
            Rule.of(parse_method(method, None), KeepBest(), **given_)
