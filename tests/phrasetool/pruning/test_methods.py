"""Combinations of criteria: products, means of ranks, intersections and unions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from phrasetool.pruning.measures import COUNTS, LOSSES, PROBABILITIES, SIMILARITIES, USES, Measures
from phrasetool.pruning.methods import COMBINATIONS, NAMES, parse_method
from phrasetool.pruning.thresholds import Threshold
from tests.phrasetool.pruning.measured_tables import FACTORS, MALFORMED, MEASURES, SCORES
from tests.variants import for_each


@pytest.mark.parametrize("names", [("composition", "semantic"), ("count", "probability", "significance")])
def test_a_product_multiplies_the_factors(names):
    method = parse_method(" + ".join(names))
    expected = np.prod([FACTORS[name] for name in names], axis=0)
    np.testing.assert_allclose(method.scores(MEASURES)[:4], expected, rtol=1e-5)
    assert method.scores(MEASURES)[4] == MALFORMED
    assert method.name == f"{'+'.join(names)}(product)"


def test_a_rank_is_the_mean_of_ranks():
    names = ("semantic", "count")
    # The malformed entry has no rank.
    ranks = [(rankdata(parse_method(name).scores(MEASURES)[:4]) - 1) / 3 for name in names]
    result = parse_method("+".join(names), "rank").scores(MEASURES)
    np.testing.assert_allclose(result, [*np.mean(ranks, axis=0), MALFORMED], rtol=1e-6)


SEVERAL = st.lists(st.sampled_from([name for name in NAMES if name != "random"]), min_size=2, max_size=4, unique=True)
WEIGHT = st.sampled_from(["0.5", "1", "2", "3.25"])


@given(SEVERAL, st.sampled_from(COMBINATIONS), st.randoms())
def test_the_order_of_names_changes_nothing(names, combine, rng):
    weights = {name: rng.choice(["", "*1", "*2", "*0.3"]) if combine in ("product", "rank") else "" for name in names}
    texts = [name + weights[name] for name in names]
    forward, backward = (parse_method("+".join(order), combine).scores(MEASURES) for order in (texts, texts[::-1]))
    assert forward.tolist() == backward.tolist()


@given(SEVERAL, st.sampled_from(["product", "rank"]), st.sampled_from(["1", "1.0", "01e0"]))
def test_weights_of_one_change_nothing(names, combine, one):
    plain, weighted = parse_method("+".join(names), combine), parse_method(f"*{one}+".join(names) + f"*{one}", combine)
    assert plain.scores(MEASURES).tolist() == weighted.scores(MEASURES).tolist()
    assert plain.name == weighted.name


@given(SEVERAL, st.data())
def test_weights_are_exponents_in_a_product_and_weights_in_a_mean_of_ranks(names, data):
    weights = [float(data.draw(WEIGHT)) for _ in names]
    text = "+".join(f"{name}*{weight:g}" for name, weight in zip(names, weights, strict=True))
    expected = np.prod([np.array(FACTORS[name]) ** weight for name, weight in zip(names, weights, strict=True)], axis=0)
    np.testing.assert_allclose(parse_method(text).scores(MEASURES)[:4], expected, rtol=1e-4)
    ranks = [(rankdata(SCORES[name][:4]) - 1) / 3 for name in names]
    expected = np.average(ranks, axis=0, weights=weights)
    np.testing.assert_allclose(parse_method(text, "rank").scores(MEASURES)[:4], expected, rtol=1e-5, atol=1e-7)


def test_large_powers_stay_finite():
    measures = MEASURES.with_columns({COUNTS: np.array([3e9, 1, 0, 1, 0], np.float32)})
    scores = parse_method("count*10+probability*10").scores(measures)
    assert np.isfinite(scores[:4]).all()
    assert scores[0] > scores[3] > scores[2] == 0


@given(SEVERAL)
def test_entries_kept_by_intersections_and_unions(names):
    """At any cut, each criterion keeps the entries of at least that rank."""
    ranks = {name: ((rankdata(SCORES[name][:4]) - 1) / 3).astype(np.float32) for name in names}
    intersection, union = (
        parse_method("+".join(names), combine).scores(MEASURES)[:4] for combine in ("intersection", "union")
    )
    for cut in np.float32([0, 1 / 6, 1 / 3, 0.5, 2 / 3, 1]):
        alone = [set(np.flatnonzero(ranks[name] >= cut)) for name in names]
        assert set(np.flatnonzero(intersection >= cut)) == set.intersection(*alone)
        assert set(np.flatnonzero(union >= cut)) == set.union(*alone)


@given(SEVERAL, st.data())
def test_thresholds_of_single_criteria(names, data):
    limits = [data.draw(st.sampled_from([-2.0, 0.0, 0.25, 0.3, 1.0, 2.0, 12.0])) for _ in names]
    text = "+".join(f"{name}:{limit:g}" for name, limit in zip(names, limits, strict=True))
    alone = [
        {i for i in range(4) if np.float32(SCORES[name][i]) < np.float32(limit)}
        for name, limit in zip(names, limits, strict=True)
    ]
    for combine, removed in (("intersection", set.union(*alone)), ("union", set.intersection(*alone))):
        method = parse_method(text, combine)
        fails = method.fails(method.below(method.criterion_scores(MEASURES), MEASURES.alpha))
        assert set(np.flatnonzero(fails)) == removed
        assert parse_method(method.name.removesuffix(f"({combine})"), combine) == method


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


def test_required_measures():
    assert parse_method("composition+semantic").needs == {COUNTS, LOSSES, SIMILARITIES}
    assert parse_method("usage").needs == parse_method("usage+random", "union").needs - {COUNTS} == {USES}
    assert parse_method("usage+random").needs == {COUNTS, USES}
    assert parse_method("count").needs == {COUNTS}
    counted = {measure: MEASURES[measure] for measure in (PROBABILITIES, COUNTS)}
    without = Measures(MEASURES.group_offsets, MEASURES.source_lengths, MEASURES.malformed, counted)
    for name in ("semantic", "significance", "composition", "usage", "top"):
        with pytest.raises(ValueError, match="measured without its"):
            parse_method(name).scores(without)


@for_each(
    ("text", "combine", "message"),
    [
        ("semantics", "product", "unknown criterion 'semantics'; did you mean semantic"),
        ("xyz", "product", f"unknown criterion 'xyz' .there are {', '.join(NAMES)}"),
        ("", "product", "unknown criterion ''"),
        ("count+count", "product", "count occurs twice"),
        ("count", "sum", "unknown combination 'sum'; expected one of product, rank, intersection, union"),
        ("count*x+top", "product", "the weight 'x' of count is not a number above 0, at most 10"),
        ("count*0+top", "product", "the weight '0' of count"),
        ("count*-1+top", "rank", "the weight '-1' of count"),
        ("count*11+top", "rank", "the weight '11' of count"),
        ("count*nan+top", "rank", "the weight 'nan' of count"),
        ("count*+top", "rank", "the weight '' of count"),
        ("count*2", "product", "one criterion needs no weight"),
        ("count*2+top", "intersection", "weights have no effect in an intersection"),
        ("count*2+top", "union", "weights have no effect in a union"),
        ("count:2+top", None, "top has no threshold, but others have"),
        ("count:2+top:0", "product", "are an intersection or a union, not a product"),
        ("count:2+top:0", "rank", "not a rank"),
        ("count:x", None, "the threshold of count: 'x' is not a number, a.e or a-e"),
        ("count:nan", None, "the threshold of count: .* not NaN"),
        ("count:", None, "the threshold of count: '' is not a number"),
        ("count:a+e", None, "a.e is a threshold of significance, not of count"),
        ("count:2*3+top", None, "the threshold of count: '2.3'"),
        ("significance:a+e+significance:2", None, "significance occurs twice"),
    ],
)
def test_invalid_methods_are_refused(text, combine, message):
    with pytest.raises(ValueError, match=message):
        parse_method(text, combine)


@pytest.mark.parametrize(
    ("method", "combine", "good", "bad"),
    [
        ("semantic", None, "-1 0.7 1", "-1.01 1.5 7 inf"),
        ("probability", None, "0 1", "-0.1 2"),
        ("random", None, "0.5", "2"),
        ("count", None, "0 1e9", ""),
        ("significance", None, "30 a+e a-e", ""),
        ("count+semantic", "product", "7", ""),
        ("count+semantic", "rank", "0 0.5 1", "-1 7"),
        ("count+semantic", "union", "0 0.5 1", "2"),
    ],
)
def test_thresholds_must_be_in_the_range_of_the_scores(method, combine, good, bad):
    chosen = parse_method(method, combine)
    for text in good.split():
        chosen.check_threshold(Threshold(text))
    for text in bad.split():
        with pytest.raises(ValueError, match="is outside the range of"):
            chosen.check_threshold(Threshold(text))


def test_thresholds_of_single_criteria_must_be_in_range():
    parse_method("semantic:0.7+count:20", None).check_threshold(None)
    with pytest.raises(ValueError, match="7 is outside the range of semantic, -1 to 1"):
        parse_method("count:20+semantic:7", None).check_threshold(None)
