"""The search for the smallest table within a budget."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.pruning.budget import Comparison, compare, rising_curve, search_size, size_grid
from phrasetool.smt.evaluation.bleu import Bootstrap, corpus_bleu


def compared(difference, spread=0.2):
    return Comparison(40 + difference, difference, difference - spread, difference + spread)


def search(curve, sizes, budget, spread=0.2):
    """Search a known curve, and check that each size is evaluated once, the full table first."""
    recorded = []

    def evaluate(entries):
        assert entries not in recorded
        recorded.append(entries)
        return compared(curve(entries), spread)

    result = search_size(evaluate, sizes, budget)
    assert recorded[0] == sizes[0]
    assert [trial.entries for trial in result.trials] == recorded
    return result


@given(st.integers(0, 3_000_000), st.integers(0, 3_000_000))
def test_sizes_fall_evenly(entries, smallest):
    sizes = size_grid(entries, smallest)
    assert sizes[0] == entries
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == min(max(smallest, entries // 1000, 1), entries)
    for larger, smaller in pairwise(sizes[:-1]):
        assert 1 <= larger / smaller <= 2 ** (1 / 8) * (1 + 2 / smaller)


@settings(max_examples=200)
@given(st.integers(1, 2_000_000), st.floats(0.0, 0.999), st.floats(0.001, 1))
def test_a_rising_curve_gives_the_smallest_size_within_the_budget(entries, share, border):
    """If the loss only grows, the answer is that of an exhaustive search."""
    sizes = size_grid(entries, int(share * entries))
    budget = 0.1
    result = search(lambda size: -budget * math.sqrt(border * entries / size) if size < entries else 0, sizes, budget)
    sizes_within_budget = [size for size in sizes if size == entries or math.sqrt(border * entries / size) <= 1]
    assert result.answer.entries == min(sizes_within_budget)
    assert not result.by_chance
    assert len(result.trials) <= len(sizes)
    assert len(result.trials) < 20


@settings(max_examples=100)
@given(st.integers(1, 2_000_000), st.floats(0.001, 1), st.floats(0.01, 0.5))
def test_non_inferiority_compares_the_lower_ends(entries, border, spread):
    """With intervals of equal width on a falling curve, the budget is effectively smaller by half their width."""
    sizes = size_grid(entries, 0)

    def evaluate(size):
        return compared(-math.sqrt(border * entries / size) if size < entries else 0, spread if size < entries else 0)

    cautious = search_size(evaluate, sizes, 1 + spread, non_inferior=True)
    assert cautious.answer.entries == search_size(evaluate, sizes, 1).answer.entries
    assert cautious.answer.result.low >= -1 - spread


def test_two_hopeless_sizes_end_the_search():
    sizes = size_grid(1_000_000, 0)
    result = search(lambda size: 0.0 if size > 400_000 else -9.0, sizes, 0.1)
    assert min(trial.entries for trial in result.trials) == 125_000
    assert 400_000 < result.answer.entries < 400_000 * 1.1


def test_a_dip_hides_no_smaller_table():
    """A table that is worse than one of half its size does not matter."""
    curve = {1_000_000: 0.0, 500_000: -0.3, 250_000: 0.6, 125_000: 0.5}
    result = search(lambda size: curve.get(size, 0.5 if size >= 100_000 else -2.0), size_grid(1_000_000, 0), 0.1)
    assert 100_000 <= result.answer.entries < 110_000


def test_an_isolated_success_is_treated_as_chance():
    """One small size meets the budget, but all sizes around it lose far more."""

    def curve(size):
        return 0.0 if size > 600_000 or size == 62_500 else -1.0

    result = search(curve, size_grid(1_000_000, 0), 0.1, spread=1)
    assert result.answer.entries > 600_000
    assert [trial.entries for trial in result.by_chance] == [62_500]


@given(st.integers(0, 10**6), st.floats(0, 0.5))
def test_the_answer_meets_the_budget_and_its_neighbours_were_tried(seed, noise):
    rng = random.Random(seed)
    sizes = size_grid(500_000, 9_000)
    result = search(lambda size: rng.gauss(-0.02 * (500_000 / size - 1), noise) if size < 500_000 else 0, sizes, 0.1)
    tried = [trial.entries for trial in result.trials]
    assert result.answer.result.difference >= -0.1
    index = sizes.index(result.answer.entries)
    assert set(sizes[max(index - 2, 0) : index]) <= set(tried)
    assert index == len(sizes) - 1 or sizes[index + 1] in tried
    by_size = sorted(result.trials, key=lambda trial: trial.entries)
    curve = rising_curve([trial.result.difference for trial in by_size])
    good = [t.entries for t, c in zip(by_size, curve, strict=True) if min(t.result.difference, c) >= -0.1]
    assert result.answer.entries == min(good)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_the_rising_curve_is_isotonic_regression(values):
    # Max-min formula (Barlow et al., Statistical Inference under Order Restrictions, 1972).
    count = len(values)
    means = {(a, b): np.mean(values[a : b + 1]) for a in range(count) for b in range(a, count)}
    expected = [max(min(means[a, b] for b in range(i, count)) for a in range(i + 1)) for i in range(count)]
    np.testing.assert_allclose(rising_curve(values), expected, atol=1e-9)


@pytest.mark.parametrize(("sizes", "budget"), [([], 0.1), ([3, 2], -0.1), ([3], math.nan)])
def test_invalid_searches_are_refused(sizes, budget):
    with pytest.raises(ValueError, match="cannot search"):
        search_size(lambda entries: compared(0.0), sizes, budget)


def statistics(rng, sentences, skill):
    """Return BLEU statistics of a simulated system."""
    lengths = rng.integers(5, 12, sentences)
    totals = np.maximum(lengths[:, None] - np.arange(4), 0)
    matches = rng.binomial(totals, skill ** np.arange(1, 5))
    return np.column_stack([matches, totals, lengths + rng.integers(-1, 2, sentences)]).astype(np.int32)


def test_a_difference_and_its_interval():
    """The interval is that of sacrebleu's bootstrap samples for the same seed."""
    rng = np.random.default_rng(3)
    full, pruned = statistics(rng, 60, 0.8), statistics(rng, 60, 0.75)
    bootstrap = Bootstrap(60, samples=40, seed=7)
    result = compare(bootstrap(pruned), bootstrap(full))
    draws = np.random.default_rng(7).choice(60, size=(40, 60), replace=True)
    differences = [corpus_bleu(pruned[drawn]) - corpus_bleu(full[drawn]) for drawn in draws]
    assert result.bleu == pytest.approx(corpus_bleu(pruned))
    assert result.difference == pytest.approx(corpus_bleu(pruned) - corpus_bleu(full))
    np.testing.assert_allclose([result.low, result.high], np.percentile(differences, [2.5, 97.5]), atol=1e-9)
    same = compare(bootstrap(full), bootstrap(full))
    assert (same.difference, same.low, same.high) == (0, 0, 0)
