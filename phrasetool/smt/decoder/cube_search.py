"""Cube pruning (Chiang 2007; Huang and Chiang 2007): make the most promising extensions only.

The hypotheses of a stack that cover the same words, and the options of a span they may translate next, both best
first, span a grid (an edge).  For every stack one heap holds the fringe of all its grids; the best extension
is taken out, added to the stack, and its neighbours to the right and below go in.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array
from phrasetool.smt.decoder.extension import Search, future_after, may_follow, start_pool, step, write_extension
from phrasetool.smt.decoder.hypotheses import HYPOTHESIS, NONE, Stacks, add, cover, is_covered, sorted_stack, with_room
from phrasetool.smt.decoder.stack_search import find_spans, future_costs, score_option, with_sentence_end
from phrasetool.smt.decoder.table import PhraseIndex
from phrasetool.smt.decoder.translation_options import LN10, TranslationOptions
from phrasetool.smt.language_model.automaton import Automaton

# Columns of an edge: its hypotheses in `members` (first, count), its source phrase and span, the next edge into the
# same stack.
_FIRST, _COUNT, _SOURCE, _START, _END, _NEXT = range(6)


@exact_kernel
def _add_edges(
    alive: Int32Array,
    pool: npt.NDArray[np.void],
    stack: int,
    spans: Int32Array,
    options: TranslationOptions,
    search: Search,
    members: Int32Array,
    edges: Int32Array,
    heads: Int32Array,
    used: Int64Array,
) -> tuple[Int32Array, Int32Array]:
    """Make the edges that lead on from a finished stack; used = (members, edges)."""
    n, longest = spans.shape
    done = np.zeros(len(alive), np.bool_)
    group = np.empty(len(alive), np.int32)
    for a in range(len(alive)):
        if done[a]:
            continue
        gap, mask = pool[alive[a]].gap, pool[alive[a]].mask
        size = 0
        furthest = NONE
        for b in range(a, len(alive)):
            if not done[b] and pool[alive[b]].gap == gap and pool[alive[b]].mask == mask:
                done[b] = True
                group[size] = alive[b]
                furthest = max(furthest, pool[alive[b]].end)
                size += 1
        for start in range(gap, min(n, max(furthest + 1, gap) + search.distortion_limit + 1)):
            if is_covered(gap, mask, start):
                continue
            members = with_room(members, used[0], size)
            first = used[0]
            for k in range(size):
                if abs(pool[group[k]].end + 1 - start) <= search.distortion_limit:
                    members[used[0]] = group[k]
                    used[0] += 1
            if used[0] == first:
                continue
            for end in range(start, min(start + longest, n)):
                if is_covered(gap, mask, end) or not may_follow(search, start - 1, gap, start, end):
                    break
                source = spans[start, end - start]
                if source < 0 or options.first[source] == options.first[source + 1]:
                    continue
                edges = with_room(edges, used[1], 1)
                target = stack + end - start + 1
                edges[used[1], _FIRST] = first
                edges[used[1], _COUNT] = used[0] - first
                edges[used[1], _SOURCE] = source
                edges[used[1], _START] = start
                edges[used[1], _END] = end
                edges[used[1], _NEXT] = heads[target]
                heads[target] = used[1]
                used[1] += 1
    return members, edges


@exact_kernel
def _extend(
    fringe: npt.NDArray[np.void],
    places: Int32Array,
    new: int,
    pool: npt.NDArray[np.void],
    members: Int32Array,
    edges: Int32Array,
    edge: int,
    row: int,
    column: int,
    n: int,
    complete: bool,
    future: DoubleArray,
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
) -> None:
    """Fill fringe[new] with an extension: the hypothesis of a row of an edge by the option of a column."""
    places[new, 0], places[new, 1], places[new, 2] = edge, row, column
    number = members[edges[edge, _FIRST] + row]
    start, end = edges[edge, _START], edges[edge, _END]
    option = options.first[edges[edge, _SOURCE]] + column
    h = pool[number]
    score, foreseen, orientation = step(search, options.forward, h.score, h.option, (h.start, h.end), start, end)
    score += options.static[option]
    if search.reordering >= 0:
        score += options.backward[option, orientation]
    score += foreseen
    language, state = score_option(automaton, options, option, h.language_state)
    if complete:
        language = with_sentence_end(automaton, options, search, option, language, state)
    score += language * (LN10 * search.language_weight)
    after = future_after(future, h.total - h.score, h.gap, h.mask, n, start, end)
    write_extension(
        fringe[new], search, number, option, start, end, score, after, cover(h.gap, h.mask, start, end), state,
        options.forward_classes[option],
    )  # fmt: skip


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
    """Translate one sentence; returns what `stack_search` returns."""
    n = len(words)
    spans = find_spans(index, words)
    future = future_costs(spans, options)
    pool = start_pool(1 << 12, stacks, search, future[0, n])
    used = np.int64(1)
    members = np.empty(1 << 10, np.int32)
    edges = np.empty((1 << 10, 6), np.int32)
    heads = np.full(n + 1, NONE, np.int32)
    counts = np.zeros(2, np.int64)
    # The fringe: extensions made but not yet taken, and for each its edge, row and column.
    fringe = np.empty(1 << 10, HYPOTHESIS)
    places = np.empty((1 << 10, 3), np.int32)
    for stack in range(n + 1):
        heap = [(0.0, np.int64(0))]
        heap.pop()
        waiting = np.int64(0)
        edge = heads[stack]
        while edge >= 0:
            fringe = with_room(fringe, waiting, 1)
            places = with_room(places, waiting, 1)
            _extend(
                fringe, places, waiting, pool, members, edges, edge, 0, 0, n, stack == n, future, options, automaton,
                search,
            )  # fmt: skip
            heapq.heappush(heap, (-fringe[waiting].total, np.int64(waiting)))
            waiting += 1
            edge = edges[edge, _NEXT]
        pops = 0
        while len(heap) > 0 and pops < pop_limit:
            _, item = heapq.heappop(heap)
            pops += 1
            pool = with_room(pool, used, 1)
            pool[used] = fringe[item]
            used = add(stacks, pool, used, stack, search.keep_arcs)
            edge, row, column = places[item]
            source = edges[edge, _SOURCE]
            # To the right always, down only in the first column: every cell has one way to it.
            for down in range(2):
                x, y = (row + 1, column) if down == 1 else (row, column + 1)
                if down == 1 and (column > 0 or x == edges[edge, _COUNT]):
                    continue
                if options.first[source] + y == options.first[source + 1]:
                    continue
                fringe = with_room(fringe, waiting, 1)
                places = with_room(places, waiting, 1)
                _extend(
                    fringe, places, waiting, pool, members, edges, edge, x, y, n, stack == n, future, options,
                    automaton, search,
                )  # fmt: skip
                heapq.heappush(heap, (-fringe[waiting].total, np.int64(waiting)))
                waiting += 1
        if stack < n:
            members, edges = _add_edges(
                sorted_stack(stacks, pool, stack), pool, stack, spans, options, search, members, edges, heads, counts
            )
    return pool[:used], stacks.slots[n, 0]
