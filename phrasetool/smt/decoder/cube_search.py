"""Cube pruning (Chiang 2007; Huang and Chiang 2007): create only the most promising extensions.

The hypotheses of a stack that cover the same words, and the options of a span that they may translate next, both best
first, form a grid (an edge).  For every stack one heap holds the fringe of all its grids; the best extension is popped
and added to the stack, and its neighbours to the right and below are pushed unless they were pushed before.  This is
the order of Moses (moses/SearchCubePruning.cpp, moses/BitmapContainer.cpp) except for ties, which Moses breaks by
addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array
from phrasetool.smt.decoder.hypotheses import (
    NONE,
    Search,
    Stacks,
    add,
    best_complete,
    chains,
    cover,
    future_parts,
    is_covered,
    may_follow,
    merge_sort,
    sorted_stack,
    start_pool,
    state_span,
    step,
    with_room,
)
from phrasetool.smt.decoder.stack_search import find_spans, future_costs, score_option, with_sentence_end
from phrasetool.smt.decoder.table import PhraseIndex
from phrasetool.smt.decoder.translation_options import TranslationOptions
from phrasetool.smt.language_model.automaton import Automaton
from phrasetool.smt.language_model.combination import LACKS_ROOM, lacks_room
from phrasetool.smt.language_model.ngrams import LN10

EDGE = np.dtype(
    [
        ("mask", np.uint64),  # coverage of its extensions
        ("lost", np.float64),  # future cost of the gap that it fills
        ("left", np.float64),  # and of the rest of the gap on either side
        ("right", np.float64),
        ("gap", np.int32),
        ("first", np.int32),  # its hypotheses in `members`
        ("count", np.int32),
        ("option", np.int32),  # its first option
        ("options", np.int32),
        ("start", np.int32),  # its source span
        ("end", np.int32),
        ("next", np.int32),  # the next edge into the same stack
    ],
    align=True,
)
# An extension that is not popped yet: its scores, its cell in the grid of its edge, and its language-model state.
WAITING = np.dtype(
    [
        ("score", np.float64),
        ("total", np.float64),
        ("edge", np.int32),
        ("row", np.int32),
        ("column", np.int32),
        ("language_state", np.int32),
    ],
    align=True,
)
# An item of the heap.
QUEUED = np.dtype([("total", np.float64), ("number", np.int64)], align=True)
# Cached language model score of an option after a state; hypotheses often share both.
KNOWN = np.dtype([("key", np.int64), ("score", np.float64), ("state", np.int64)], align=True)
_KNOWN_SIZE = 1 << 12
# Maximum number of records of a new pool.
_LARGEST_START = 1 << 16


class Fringe(NamedTuple):
    """The waiting extensions, and the heap of their numbers, best total first, the older first on a tie.

    Attributes:
        waiting, heap: records, including unused ones.
        taken: int32, shape (P,), P a power of two: numbers of popped extensions, by the hash of their cells, -1 where
            free.
    """

    waiting: npt.NDArray[np.void]
    heap: npt.NDArray[np.void]
    taken: Int32Array


class Scratch(NamedTuple):
    """Working memory for sorting hypotheses: float64, int32 and float64, one element per hypothesis of a stack."""

    totals: DoubleArray
    other: Int32Array
    other_totals: DoubleArray


@inner_kernel
def _before(heap: npt.NDArray[np.void], a: int, total: float, number: int) -> bool:
    """Return whether item `a` of the heap comes before an item with this total and number.

    Branch-free, because a processor would mispredict half of the branches.
    """
    return (heap[a].total > total) | ((heap[a].total == total) & (heap[a].number < number))


@inner_kernel
def push(heap: npt.NDArray[np.void], size: int, total: float, number: int) -> None:
    """Push an item to a heap of `size` items."""
    position = np.int64(size)
    while position > 0:
        parent = (position - 1) >> 1
        if _before(heap, parent, total, number):
            break
        heap[position].total, heap[position].number = heap[parent].total, heap[parent].number
        position = parent
    heap[position].total, heap[position].number = total, number


@inner_kernel
def pop(heap: npt.NDArray[np.void], size: int) -> int:
    """Pop the best number from a heap of `size` items.

    The last item belongs near the leaves: the better children move up along a path to a leaf, and the last item takes
    the position of the last of them or one slightly above it.
    """
    best = heap[0].number
    last = size - 1
    position = np.int64(0)
    child = np.int64(1)
    while child + 1 < last:
        child += np.int64(_before(heap, child + 1, heap[child].total, heap[child].number))
        heap[position].total, heap[position].number = heap[child].total, heap[child].number
        position = child
        child = 2 * position + 1
    if child < last:
        heap[position].total, heap[position].number = heap[child].total, heap[child].number
        position = child
    push(heap, position, heap[last].total, heap[last].number)
    return np.int64(best)


@inner_kernel
def _popped_slot(fringe: Fringe, edge: int, row: int, column: int) -> int:
    """Return the slot of the popped extension of a grid's cell, or the free slot for it."""
    last = len(fringe.taken) - 1
    # Rows and columns are small numbers: bits that they share with the edge only make collisions likelier.
    key = np.int64(edge) << 32 ^ np.int64(row) << 16 ^ np.int64(column)
    slot = np.int64(mix(np.uint64(0), key) & np.uint64(last))
    while True:
        number = fringe.taken[slot]
        if number < 0:
            break
        w = fringe.waiting[number]
        if w.edge == edge and w.row == row and w.column == column:
            break
        slot = (slot + 1) & last
    return slot


@exact_kernel
def _larger_fringe(fringe: Fringe, made: int) -> Fringe:
    """Return the fringe with room for one more extension and for more popped ones."""
    waiting, heap = with_room(fringe.waiting, made, 1), with_room(fringe.heap, made, 1)
    larger = Fringe(waiting, heap, np.full(2 * len(fringe.taken), NONE, np.int32))
    for number in fringe.taken:
        if number >= 0:
            w = waiting[number]
            larger.taken[_popped_slot(larger, w.edge, w.row, w.column)] = number
    return larger


@borrowing_kernel
def _sort_by_jump(
    members: Int32Array, pool: npt.NDArray[np.void], start: int, search: Search, scratch: Scratch
) -> None:
    """Sort hypotheses with one coverage by their totals after the jump to `start`, best first."""
    count = len(members)
    totals = scratch.totals[:count]
    for i in range(count):
        h = pool[members[i]]
        totals[i] = h.total - search.distortion_weight * abs(h.end + 1 - start)
    merge_sort(members, totals, scratch.other, scratch.other_totals)


@exact_kernel
def _add_edges(
    alive: Int32Array,
    pool: npt.NDArray[np.void],
    stack: int,
    spans: Int32Array,
    future: DoubleArray,
    options: TranslationOptions,
    search: Search,
    members: Int32Array,
    edges: npt.NDArray[np.void],
    heads: Int32Array,
    used: Int64Array,
) -> tuple[Int32Array, npt.NDArray[np.void]]:
    """Create the edges that extend a finished stack; used = (members used, edges used)."""
    count = len(alive)
    masks, gaps = np.empty(count, np.uint64), np.empty(count, np.int32)
    _list_coverages(alive, pool, masks, gaps)
    firsts, following = chains(masks, gaps)
    scratch = Scratch(np.empty(count, np.float64), np.empty(count, np.int32), np.empty(count, np.float64))
    processed = np.int64(0)
    while processed < len(firsts):
        processed, needed_members, needed_edges = _add_coverages(
            processed, firsts, following, alive, pool, stack, gaps, masks, spans, future, options, search, members,
            edges, heads, used, scratch,
        )  # fmt: skip
        members, edges = with_room(members, used[0], needed_members), with_room(edges, used[1], needed_edges)
    return members, edges


@borrowing_kernel
def _list_coverages(
    alive: Int32Array, pool: npt.NDArray[np.void], masks: npt.NDArray[np.uint64], gaps: Int32Array
) -> None:
    for i in range(len(alive)):
        masks[i], gaps[i] = pool[alive[i]].mask, pool[alive[i]].gap


@inner_kernel
def _last_start(
    head: int, following: Int32Array, alive: Int32Array, pool: npt.NDArray[np.void], gap: int, n: int, search: Search
) -> tuple[int, int]:
    """Return the length of the list from `head` on, and the word after the last one at which a next span may start."""
    size, furthest = np.int64(0), np.int64(NONE)
    member = np.int64(head)
    while member >= 0:
        furthest = max(furthest, np.int64(pool[alive[member]].end))
        size += 1
        member = np.int64(following[member])
    return size, min(n, max(furthest + 1, np.int64(gap)) + search.distortion_limit + 1)


@borrowing_kernel
def _add_coverages(
    processed: int,
    firsts: Int32Array,
    following: Int32Array,
    alive: Int32Array,
    pool: npt.NDArray[np.void],
    stack: int,
    gaps: Int32Array,
    masks: npt.NDArray[np.uint64],
    spans: Int32Array,
    future: DoubleArray,
    options: TranslationOptions,
    search: Search,
    members: Int32Array,
    edges: npt.NDArray[np.void],
    heads: Int32Array,
    used: Int64Array,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Create the edges that extend the hypotheses of one coverage after another, as long as there is room.

    Args:
        processed: coverages processed before.
        firsts, following: hypotheses grouped by coverage, as `chains` returns them.

    Returns:
        Coverages processed so far, and the members and edges that the next one may need.
    """
    n, longest = spans.shape
    for number in range(processed, len(firsts)):
        head = firsts[number]
        gap, mask = np.int64(gaps[head]), masks[head]
        size, end = _last_start(head, following, alive, pool, gap, n, search)
        needed_members, needed_edges = size * (end - gap), longest * (end - gap)
        if used[0] + needed_members > len(members) or used[1] + needed_edges > len(edges):
            return np.int64(number), needed_members, needed_edges
        for start in range(gap, end):
            if is_covered(gap, mask, start):
                continue
            first = used[0]
            member = np.int64(head)
            while member >= 0:
                if abs(pool[alive[member]].end + 1 - start) <= search.distortion_limit:
                    members[used[0]] = alive[member]
                    used[0] += 1
                member = np.int64(following[member])
            if search.sorts_by_jump and used[0] > first + 1:
                _sort_by_jump(members[first : used[0]], pool, start, search, scratch)
            if used[0] > first:
                _add_spans(first, stack, gap, mask, start, spans, future, options, search, edges, heads, used)
    return np.int64(len(firsts)), np.int64(0), np.int64(0)


@inner_kernel
def _add_spans(
    first: int,
    stack: int,
    gap: int,
    mask: int,
    start: int,
    spans: Int32Array,
    future: DoubleArray,
    options: TranslationOptions,
    search: Search,
    edges: npt.NDArray[np.void],
    heads: Int32Array,
    used: Int64Array,
) -> None:
    """Create the edges of the spans that begin at `start`, for the members from `first` on, which have one coverage."""
    n, longest = spans.shape
    for end in range(start, min(start + longest, n)):
        if is_covered(gap, mask, end) or not may_follow(search, start - 1, gap, start, end):
            break
        source = spans[start, end - start]
        if source < 0 or options.first[source] == options.first[source + 1]:
            continue
        target = stack + end - start + 1
        e = edges[used[1]]
        e.gap, e.mask = cover(gap, mask, start, end)
        e.lost, e.left, e.right = future_parts(future, gap, mask, n, start, end)
        e.first, e.count = first, used[0] - first
        e.option = options.first[source]
        e.options = options.first[source + 1] - options.first[source]
        e.start, e.end = start, end
        e.next = heads[target]
        heads[target] = used[1]
        used[1] += 1


@inner_kernel
def _extend(
    new: Any,
    e: Any,
    h: Any,
    option: int,
    complete: bool,
    known: npt.NDArray[np.void],
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
) -> None:
    """Score hypothesis h extended by an option of edge e, and write the result to new."""
    score, foreseen, orientation = step(search, options.forward, h.score, h.option, (h.start, h.end), e.start, e.end)
    score += options.static[option]
    if search.reordering >= 0:
        score += options.backward[option, orientation]
    score += foreseen
    key = np.int64(h.language_state) << 32 | np.int64(option)
    cached = known[np.int64(mix(np.uint64(0), key) & np.uint64(_KNOWN_SIZE - 1))]
    if cached.key != key:
        cached.key = key
        cached.score, cached.state = score_option(automaton, options, option, h.language_state)
    language, state = cached.score, cached.state
    if complete:
        language, state = with_sentence_end(automaton, options, search, option, language, state)
    score += language * (LN10 * search.language_weight)
    new.score = score
    new.total = score + (h.total - h.score - e.lost + e.left + e.right)
    new.language_state = state


@inner_kernel
def _take(new: Any, w: Any, e: Any, search: Search, number: int, forward_class: int) -> None:
    """Fill a record of the pool with a popped extension of hypothesis `number`."""
    new.score, new.total = w.score, w.total
    new.gap, new.mask = e.gap, e.mask
    new.language_state = w.language_state
    new.start, new.end = e.start, e.end
    new.state_span = state_span(search.span_in_state, e.start, e.end)
    new.option = e.option + w.column
    new.back = number
    new.arcs = NONE
    new.forward_class = forward_class


@borrowing_kernel
def _fill(
    at: Int64Array,
    stack: int,
    pool: npt.NDArray[np.void],
    fringe: Fringe,
    known: npt.NDArray[np.void],
    members: Int32Array,
    edges: npt.NDArray[np.void],
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
    stacks: Stacks,
    pop_limit: int,
) -> bool:
    """Create the hypotheses of a stack from the edges that lead to it; return False when the room is used up.

    at = (pool records used, next edge to begin, extensions created, extensions popped, the last one popped, how many of
    its neighbours were visited).
    """
    waiting, heap = fringe.waiting, fringe.heap
    used, edge_to_begin, created, pops, popped, turns = at[0], at[1], at[2], at[3], at[4], at[5]
    complete = stack == len(stacks.sizes) - 1
    # An extension may create one state, and the sentence end another.
    while used < len(pool) and created < len(waiting) and 2 * pops < len(fringe.taken) and not lacks_room(automaton, 2):
        if edge_to_begin >= 0:
            edge, row, column = edge_to_begin, np.int64(0), np.int64(0)
            edge_to_begin = np.int64(edges[edge].next)
        elif turns < 2:
            w = waiting[popped]
            edge, row, column = np.int64(w.edge), np.int64(w.row), np.int64(w.column)
            turns += 1
            # If the other neighbour that leads to a cell was popped before, the cell has been created already.
            if turns == 1:
                column += 1
                if column == edges[edge].options:
                    continue
                if row > 0 and fringe.taken[_popped_slot(fringe, edge, row - 1, column)] >= 0:
                    continue
            else:
                row += 1
                if row == edges[edge].count:
                    continue
                if column > 0 and fringe.taken[_popped_slot(fringe, edge, row, column - 1)] >= 0:
                    continue
        elif created > pops and pops < pop_limit:
            popped = pop(heap, created - pops)
            pops += 1
            turns = 0
            w = waiting[popped]
            fringe.taken[_popped_slot(fringe, w.edge, w.row, w.column)] = popped
            e = edges[w.edge]
            _take(pool[used], w, e, search, members[e.first + w.row], options.forward_classes[e.option + w.column])
            used = np.int64(add(stacks, pool, used, stack, search.keep_arcs))
            continue
        else:
            at[0] = used
            return True
        e = edges[edge]
        w = waiting[created]
        w.edge, w.row, w.column = edge, row, column
        _extend(w, e, pool[members[e.first + row]], e.option + column, complete, known, options, automaton, search)
        push(heap, created - pops, w.total, created)
        created += 1
    at[0], at[1], at[2], at[3], at[4], at[5] = used, edge_to_begin, created, pops, popped, turns
    return False


@exact_kernel
def cube_search(
    words: Int32Array,
    index: PhraseIndex,
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
    stacks: Stacks,
    pop_limit: int,
) -> tuple[npt.NDArray[np.void], int]:
    """Translate one sentence; for the result see `stack_search`."""
    n = len(words)
    spans = find_spans(index, words)
    future = future_costs(spans, options)
    pool = start_pool(min(pop_limit * n + 2, _LARGEST_START), stacks, search, future[0, n])
    used = np.int64(1)
    members = np.empty(1 << 10, np.int32)
    edges = np.empty(1 << 10, EDGE)
    heads = np.full(n + 1, NONE, np.int32)
    counts = np.zeros(2, np.int64)
    fringe = Fringe(np.empty(1 << 11, WAITING), np.empty(1 << 11, QUEUED), np.empty(1 << 12, np.int32))
    known = np.empty(_KNOWN_SIZE, KNOWN)
    for i in range(_KNOWN_SIZE):
        known[i].key = NONE
    for stack in range(n + 1):
        at = np.array([used, heads[stack], 0, 0, 0, 2])
        fringe.taken[:] = NONE
        while not _fill(at, stack, pool, fringe, known, members, edges, options, automaton, search, stacks, pop_limit):
            if at[0] == len(pool):
                pool = with_room(pool, at[0], 1)
            if at[2] == len(fringe.waiting) or 2 * at[3] >= len(fringe.taken):
                fringe = _larger_fringe(fringe, at[2])
            if lacks_room(automaton, 2):
                return pool[:used], np.int32(LACKS_ROOM)
        used = at[0]
        if stack < n:
            alive = sorted_stack(stacks, pool, stack)
            members, edges = _add_edges(
                alive, pool, stack, spans, future, options, search, members, edges, heads, counts
            )
    return pool[:used], best_complete(stacks, pool, search.keep_arcs)
