"""Coverage, recombination and pruning."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.decoder.hypotheses import (
    HYPOTHESIS,
    NONE,
    add,
    chains,
    cover,
    is_covered,
    make_stacks,
    sorted_stack,
    with_room,
)
from tests.phrasetool.smt.decoder.drawn_spans import EMPTY, spans


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


@given(st.lists(st.tuples(st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1]), st.integers(-1, 2)), max_size=40))
def test_what_has_equal_keys_is_chained_in_order(keys):
    firsts, following = chains(np.array([a for a, _ in keys], np.uint64), np.array([b for _, b in keys], np.int32))
    found = []
    for first in firsts.tolist():
        chain = [first]
        while following[chain[-1]] >= 0:
            chain.append(int(following[chain[-1]]))
        found.append(chain)
    expected = {}
    for number, key in enumerate(keys):
        expected.setdefault(key, []).append(number)
    assert found == list(expected.values())
