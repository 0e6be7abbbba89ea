"""Coverage, recombination and pruning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.decoder.extension import future_after
from phrasetool.smt.decoder.hypotheses import (
    HYPOTHESIS,
    NONE,
    WINDOW,
    add,
    cover,
    is_covered,
    make_stacks,
    sorted_stack,
    with_room,
)

EMPTY = np.uint64(0)


LENGTHS = st.sampled_from([1, 5, 64, 65, 130])


@st.composite
def spans(draw, length=LENGTHS, most=40):
    """Spans that may be covered one after another: free, and less than a window behind the first gap."""
    n, covered, found = draw(length), set(), []
    for _ in range(draw(st.integers(0, most))):
        gap = next(i for i in range(n + 1) if i not in covered)
        free = [i for i in range(gap, min(n, gap + WINDOW)) if i not in covered]
        if not free:
            break
        # Often the first gap, so that the window moves.
        start = draw(st.one_of(st.just(free[0]), st.sampled_from(free)))
        end = start
        while end + 1 < min(n, gap + WINDOW) and end + 1 not in covered and draw(st.booleans()):
            end += 1
        covered |= set(range(start, end + 1))
        found.append((start, end))
    return n, found


@given(spans())
def test_coverage_is_a_set(drawn):
    n, found = drawn
    gap, mask, covered = 0, EMPTY, set()
    for start, end in found:
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


@given(spans(length=st.integers(1, 12), most=5), st.data())
def test_future_after_is_the_sum_over_the_gaps(drawn, data):
    n, found = drawn
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    future = rng.normal(-5, 2, (n + 1, n + 1))
    future[np.arange(n + 1), np.arange(n + 1)] = 0

    def total(covered):
        """Over the maximal runs of words that are not covered."""
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
    for start, end in found:
        before = future_after(future, before, gap, np.uint64(mask), n, start, end)
        gap, mask = cover(gap, np.uint64(mask), start, end)
        covered |= set(range(start, end + 1))
        assert before == pytest.approx(total(covered), abs=1e-9)


KEY = ("mask", "gap", "language_state", "end", "swap_start", "forward_class")


@st.composite
def hypotheses(draw):
    """Few keys, so that many are equal; totals without ties."""
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
def test_equal_hypotheses_recombine_and_nothing_else_does(found, keep_arcs):
    pool, used, stacks = fill(found, 1000, -np.inf, keep_arcs)
    best = {}
    for key, total in found:
        best[key] = max(best.get(key, -np.inf), total)
    kept = sorted_stack(stacks, pool, 1)
    assert [float(pool[i]["total"]) for i in kept] == sorted(best.values(), reverse=True)
    if not keep_arcs:
        assert used == len(best)
        return
    # Every hypothesis hangs on the best of its equals.
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


@given(hypotheses(), st.sampled_from([0.0, -1.0, -5.0]))
def test_the_beam_drops_what_is_far_below_the_best(found, beam):
    pool, _, stacks = fill(found, 1000, beam, False)
    best = {}
    for key, total in found:
        best[key] = max(best.get(key, -np.inf), total)
    limit = max(best.values()) + beam
    kept = sorted_stack(stacks, pool, 1)
    assert [float(pool[i]["total"]) for i in kept] == sorted((t for t in best.values() if t >= limit), reverse=True)


def test_complete_hypotheses_are_all_equal():
    pool, stacks = np.zeros(3, HYPOTHESIS), make_stacks(1, 10, -np.inf)
    used = 0
    for total, end in [(-2.0, 1), (-1.0, 2), (-3.0, 3)]:
        pool[used]["total"], pool[used]["end"] = total, end
        used = add(stacks, pool, used, 1, False)
    assert used == 1
    assert pool[stacks.slots[1, 0]]["end"] == 2
