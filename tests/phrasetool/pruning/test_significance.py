"""Fisher's exact test and the counts that it needs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.pruning.significance import EPSILON, FisherExactTest, count_co_occurrences
from phrasetool.smt.corpus.sentence_index import SentenceIndex
from tests import naive_filter


@st.composite
def tables(draw):
    """Draw N and counts that N sentence pairs can have."""
    n = draw(st.integers(1, 300))
    source, target = draw(st.integers(0, n)), draw(st.integers(0, n))
    joint = draw(st.integers(max(0, source + target - n), min(source, target)))
    return n, joint, source, target


@given(tables())
def test_equals_exact_fractions(table):
    n, *counts = table
    value = FisherExactTest(n).negative_log_p(*(np.array([count]) for count in counts))[0]
    assert value == pytest.approx(naive_filter.negative_log_p(*counts, n), rel=1e-10, abs=1e-9)
    assert value >= 0


@given(tables())
def test_the_sides_may_be_swapped(table):
    n, joint, source, target = table
    test = FisherExactTest(n)
    first, second = (
        test.negative_log_p(*(np.array([c]) for c in counts))[0]
        for counts in ((joint, source, target), (joint, target, source))
    )
    assert first == pytest.approx(second, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "counts"),
    [(29_000, (1, 1, 1)), (29_000, (3, 4, 5)), (29_000, (25_000, 26_000, 27_000)), (29_000, (14_500, 14_500, 14_500)),
     (29_000, (9, 9, 29_000)), (29_000, (0, 5, 5)), (29_000, (2000, 2000, 2100)), (29_000, (28_999, 28_999, 28_999)),
     (3000, (1050, 2000, 1500)), (3000, (1000, 2000, 1500)), (3000, (800, 2000, 1500)), (3000, (501, 2000, 1500))],
)  # fmt: skip
def test_exact_far_into_the_tails(n, counts):
    """-ln p of 20,000 is the probability e^-20000, which is too small for a double."""
    value = FisherExactTest(n).negative_log_p(*(np.array([c]) for c in counts))[0]
    assert value == pytest.approx(naive_filter.negative_log_p(*counts, n), abs=1e-7)


def test_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    n = 10**6
    source, target = (np.exp(rng.uniform(0, math.log(n / 2), 500)).astype(np.int64) for _ in range(2))
    joint = rng.binomial(np.minimum(source, target), rng.uniform(0, 0.05, 500))
    values = FisherExactTest(n).negative_log_p(joint, source, target)
    expected = -stats.hypergeom.logsf(joint - 1, n, source, target)
    usable = expected < 600
    assert usable.sum() > 400
    np.testing.assert_allclose(values[usable], expected[usable], rtol=1e-9, atol=1e-6)
    for i in range(20):
        a, b, c = int(joint[i]), int(source[i] - joint[i]), int(target[i] - joint[i])
        p = stats.fisher_exact([[a, b], [c, n - a - b - c]], alternative="greater").pvalue
        if p > 1e-300:
            assert values[i] == pytest.approx(-math.log(p), abs=1e-6)


def test_a_large_corpus_stays_exact():
    mpmath = pytest.importorskip("mpmath")
    n = 10**7
    test = FisherExactTest(n)

    def log_choose(a, b):
        return mpmath.loggamma(a + 1) - mpmath.loggamma(b + 1) - mpmath.loggamma(a - b + 1)

    with mpmath.workdps(60):
        for joint, source, target in [(1, 1, 1), (2, 3, 5), (40, 5000, 70_000), (300, 1000, 900), (90, 4000, 200_000)]:
            terms = [
                mpmath.exp(log_choose(source, k) + log_choose(n - source, target - k) - log_choose(n, target))
                for k in range(joint, min(source, target) + 1)
            ]
            exact = float(-mpmath.log(mpmath.fsum(terms)))
            value = test.negative_log_p(np.array([joint]), np.array([source]), np.array([target]))[0]
            assert value == pytest.approx(exact, abs=1e-6)


@given(st.integers(1, 10**5))
def test_alpha_is_the_value_of_one_one_one(n):
    test = FisherExactTest(n)
    ones = np.ones(1, np.int64)
    value = test.negative_log_p(ones, ones, ones)
    assert test.alpha == pytest.approx(value[0], abs=1e-8)
    assert value[0] < test.alpha + EPSILON
    if n > 1:
        assert not value[0] < test.alpha - EPSILON


@pytest.mark.parametrize("counts", [(2, 1, 3), (-1, 1, 1), (0, 6, 6), (1, 11, 1)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="impossible in 10 sentence pairs"):
        FisherExactTest(10).negative_log_p(*(np.array([c]) for c in counts))


def test_wrong_shapes_and_sizes_are_refused():
    with pytest.raises(ValueError, match="one length"):
        FisherExactTest(10).negative_log_p(np.zeros(2, int), np.zeros(1, int), np.zeros(2, int))
    with pytest.raises(ValueError, match="0 sentence pairs"):
        FisherExactTest(0)


_SENTENCES = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=8, max_size=8)
_PHRASE = st.lists(st.integers(0, 3), min_size=1, max_size=3)


@given(_SENTENCES, _SENTENCES, st.lists(st.tuples(_PHRASE, _PHRASE), max_size=12))
def test_counts_pairs(sources, targets, pairs):
    indexes = [SentenceIndex.build(Phrases.from_lists(side), 4) for side in (sources, targets)]
    counts = count_co_occurrences(*indexes, *(Phrases.from_lists([pair[side] for pair in pairs]) for side in (0, 1)))
    for i, (source, target) in enumerate(pairs):
        a, b = naive_filter.sentences_of([source], sources), naive_filter.sentences_of([target], targets)
        assert counts[:, i].tolist() == [len(a & b), len(a), len(b)]


def test_sides_of_different_corpora_are_refused():
    indexes = [SentenceIndex.build(Phrases.from_lists([[0]] * n), 1) for n in (1, 2)]
    with pytest.raises(ValueError, match="1 source sentences, 2 target"):
        count_co_occurrences(*indexes, Phrases.from_lists([[0]]), Phrases.from_lists([[0]]))
