"""Coverage, recombination and pruning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.decoder.hypotheses import (
    HYPOTHESIS,
    NO_SPAN,
    NONE,
    SPAN_END,
    WHOLE_SPAN,
    add,
    best_complete,
    chains,
    cover,
    future_after,
    is_covered,
    make_stacks,
    sorted_stack,
    state_span,
    with_room,
)
from tests.phrasetool.smt.decoder.drawn_spans import EMPTY, spans


@given(spans())
def test_coverage_is_a_set(drawn):
    n, covered_spans = drawn
    gap, mask, covered = 0, EMPTY, set()
    for start, end in covered_spans:
        gap, mask = cover(gap, np.uint64(mask), start, end)
        covered |= set(range(start, end + 1))
        assert gap == next(i for i in range(n + 1) if i not in covered)
        mask = np.uint64(mask)
        assert [bool(is_covered(gap, mask, i)) for i in range(n + 2)] == [i in covered for i in range(n + 2)]


def test_a_full_window_is_passed():
    gap, mask = cover(0, EMPTY, 1, 63)
    assert gap == 0
    assert cover(gap, np.uint64(mask), 0, 0) == (64, 0)
    assert cover(0, EMPTY, 0, 63) == (64, 0)


KEY = ("mask", "gap", "language_state", "state_span", "forward_class")


@st.composite
def hypotheses(draw):
    """Draw hypotheses with few keys, so that many are equal, and totals without ties."""
    count = draw(st.integers(1, 60))
    keys = draw(st.lists(st.tuples(*[st.integers(0, 2)] * len(KEY)), min_size=1, max_size=12))
    totals = np.random.default_rng(draw(st.integers(0, 10**6))).permutation(count) / 3.0
    return [(draw(st.sampled_from(keys)), float(total)) for total in totals]


def fill(found, size, beam, keep_arcs):
    pool, used = np.zeros(4, HYPOTHESIS), 0
    stacks = make_stacks(2, size, beam)
    for key, total in found:
        pool = with_room(pool, used, 1)
        pool[used]["total"] = total
        for name, value in zip(KEY, key, strict=True):
            pool[used][name] = value
        used = add(stacks, pool, used, 1, keep_arcs)
    return pool, used, stacks


@given(hypotheses(), st.booleans())
def test_equal_hypotheses_recombine_and_no_others_do(found, keep_arcs):
    pool, used, stacks = fill(found, 1000, -np.inf, keep_arcs)
    best = {}
    for key, total in found:
        best[key] = max(best.get(key, -np.inf), total)
    kept = sorted_stack(stacks, pool, 1)
    assert [float(pool[i]["total"]) for i in kept] == sorted(best.values(), reverse=True)
    if not keep_arcs:
        assert used == len(best)
        return
    # Every hypothesis is in the chain of the best one with the same key.
    assert used == len(found)
    for i in kept:
        chain, number = [], i
        while number != NONE:
            chain.append(float(pool[number]["total"]))
            number = pool[number]["arcs"]
        key = tuple(int(pool[i][name]) for name in KEY)
        assert sorted(chain) == sorted(total for k, total in found if k == key)
        assert chain[0] == max(chain)


@given(hypotheses(), st.integers(1, 8), st.booleans())
def test_a_stack_keeps_the_best(found, size, keep_arcs):
    pool, _, stacks = fill(found, size, -np.inf, keep_arcs)
    best = {}
    for key, total in found:
        best[key] = max(best.get(key, -np.inf), total)
    kept = sorted_stack(stacks, pool, 1)
    assert [float(pool[i]["total"]) for i in kept] == sorted(best.values(), reverse=True)[:size]


@given(hypotheses(), st.sampled_from([-0.4, -1.0, -5.0]))
def test_hypotheses_that_fall_below_the_beam_are_kept_until_the_stack_is_full(found, beam):
    pool, _, stacks = fill(found, 1000, beam, False)
    best, highest = {}, -np.inf
    for key, total in found:
        # The beam is applied when a hypothesis is added.
        if total >= highest + beam:
            best[key] = max(best.get(key, -np.inf), total)
            highest = max(highest, total)
    kept = sorted_stack(stacks, pool, 1)
    assert [float(pool[i]["total"]) for i in kept] == sorted(best.values(), reverse=True)


@pytest.mark.parametrize("apart", [1, 7, 20])
@given(st.integers(0, 300), st.integers(0, 10**6))
def test_a_stack_is_sorted_by_total_and_then_by_age(apart, count, seed):
    """The order does not depend on where in the pool the hypotheses are."""
    totals = np.random.default_rng(seed).integers(0, 40, count).astype(np.float64)
    pool, stacks = np.zeros(count * apart + 1, HYPOTHESIS), make_stacks(2, 1000, -np.inf)
    for number, total in enumerate(totals):
        record = pool[number * apart]
        record["total"], record["language_state"] = total, number
        add(stacks, pool, number * apart, 1, False)
    expected = sorted(range(count), key=lambda number: (-totals[number], number))
    assert [int(number) // apart for number in sorted_stack(stacks, pool, 1)] == expected


def stack_of(totals, size, beam, keeps_ties):
    """Return the totals that a stack keeps of hypotheses that do not recombine."""
    pool, stacks, used = np.zeros(len(totals) + 1, HYPOTHESIS), make_stacks(2, size, beam, keeps_ties), 0
    for number, total in enumerate(totals):
        pool[used]["total"], pool[used]["language_state"] = total, number
        used = add(stacks, pool, used, 1, False)
    return [float(pool[i]["total"]) for i in sorted_stack(stacks, pool, 1)]


@pytest.mark.parametrize("keeps_ties", [False, True])
def test_a_full_stack_is_cut_at_the_beam(keeps_ties):
    totals = [-6.0, -5.0, -2.0, 0.0]
    assert stack_of(totals, 4, -5.0, keeps_ties) == [0.0, -2.0, -5.0, -6.0]
    # The hypothesis exactly at the beam is removed, too.
    assert stack_of(totals, 3, -5.0, keeps_ties) == [0.0, -2.0]


def test_only_cube_pruning_keeps_ties():
    totals = [0.0, -1.0, -2.0, -2.0, -3.0]
    assert stack_of(totals, 3, -np.inf, False) == [0.0, -1.0, -2.0]
    assert stack_of(totals, 3, -np.inf, True) == [0.0, -1.0, -2.0, -2.0]


@pytest.mark.parametrize("keep_arcs", [False, True])
def test_the_best_complete_hypothesis_leads_to_all_others_that_the_last_stack_keeps(keep_arcs):
    pool, stacks, used = np.zeros(5, HYPOTHESIS), make_stacks(1, 2, -np.inf), 0
    # The second and the third recombine; the first and the last are pruned.
    for total, span in [(-2.0, 1), (-1.5, 4), (-1.7, 4), (-1.0, 2), (-9.0, 3)]:
        pool[used]["total"], pool[used]["state_span"] = total, span
        used = add(stacks, pool, used, 1, keep_arcs)
    number = best_complete(stacks, pool, keep_arcs)
    chain = []
    while number != NONE:
        chain.append(float(pool[number]["total"]))
        number = pool[number]["arcs"]
    assert chain == ([-1.0, -1.5, -1.7] if keep_arcs else [-1.0])


def test_what_recombination_compares_of_a_span():
    spans = [(0, 2), (1, 2), (1, 3)]
    assert [len({int(state_span(kind, *span)) for span in spans}) for kind in (NO_SPAN, SPAN_END, WHOLE_SPAN)] == [
        1,
        2,
        3,
    ]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1]), st.integers(-1, 2)), max_size=40))
def test_rows_with_equal_keys_are_chained_in_order(keys):
    firsts, following = chains(np.array([a for a, _ in keys], np.uint64), np.array([b for _, b in keys], np.int32))
    result = []
    for first in firsts.tolist():
        chain = [first]
        while following[chain[-1]] >= 0:
            chain.append(int(following[chain[-1]]))
        result.append(chain)
    expected = {}
    for number, key in enumerate(keys):
        expected.setdefault(key, []).append(number)
    assert result == list(expected.values())


@given(spans(length=st.integers(1, 12), most=5), st.data())
def test_future_after_is_the_sum_over_the_gaps(drawn, data):
    n, covered_spans = drawn
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    future = rng.normal(-5, 2, (n + 1, n + 1))
    future[np.arange(n + 1), np.arange(n + 1)] = 0

    def total(covered):
        """Return the sum over the maximal runs of words that are not covered."""
        result, i = 0.0, 0
        while i < n:
            j = i
            while j < n and j not in covered:
                j += 1
            result += future[i, j]
            i = j + 1
        return result

    gap, mask, covered = 0, EMPTY, set()
    before = future[0, n]
    for start, end in covered_spans:
        before = future_after(future, before, gap, np.uint64(mask), n, start, end)
        gap, mask = cover(gap, np.uint64(mask), start, end)
        covered |= set(range(start, end + 1))
        assert before == pytest.approx(total(covered), abs=1e-9)
