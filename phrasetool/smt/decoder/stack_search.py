"""Stack decoding (Koehn, Och and Marcu 2003), with Moses' order of expansion, limits and pruning.

Stacks hold hypotheses by the number of source words covered.  Every hypothesis of a stack is extended by every option
of every span that it may translate next.  Language-model scores depend on the hypothesis only through its
language-model state, so hypotheses with one state are extended one after another and share them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array
from phrasetool.smt.decoder.hypotheses import (
    HYPOTHESIS,
    NONE,
    WINDOW,
    Stacks,
    add,
    cover,
    is_covered,
    sorted_stack,
    with_room,
)
from phrasetool.smt.decoder.orientation import orientation_of
from phrasetool.smt.decoder.table import PhraseIndex, find_phrase
from phrasetool.smt.decoder.translation_options import LN10, TranslationOptions
from phrasetool.smt.language_model.automaton import Automaton, score_word


class Search(NamedTuple):
    """What a search needs beside the options, all scalars.

    Attributes:
        language_weight, distortion_weight: weights.
        distortion_limit: words a jump may span; at most 63, which also stands for no limit.
        reordering: kind of the reordering model, -1 without one.
        begin_state, end_word: of the language model.
        keep_arcs: whether recombined hypotheses are kept, for n-best lists.
    """

    language_weight: float
    distortion_weight: float
    distortion_limit: int
    reordering: int
    begin_state: int
    end_word: int
    keep_arcs: bool


@exact_kernel
def find_spans(index: PhraseIndex, words: Int32Array) -> Int32Array:
    """int32, shape (n, longest): the source phrase of each span, by start and length - 1; -1 where there is none."""
    n = len(words)
    longest = min(n, max(index.longest[0], 1))
    spans = np.full((n, longest), NONE, np.int32)
    for start in range(n):
        for size in range(1, min(longest, n - start) + 1):
            spans[start, size - 1] = find_phrase(index, words, start, start + size)
    return spans


@exact_kernel
def future_costs(spans: Int32Array, options: TranslationOptions) -> DoubleArray:
    """float64, shape (n + 1, n + 1): the best isolated score of the words i..j-1, however they are cut into phrases."""
    n, longest = spans.shape
    future = np.full((n + 1, n + 1), -np.inf)
    for i in range(n + 1):
        future[i, i] = 0.0
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            best = -np.inf
            if size <= longest and spans[i, size - 1] >= 0:
                first = options.first[spans[i, size - 1]]
                if first < options.first[spans[i, size - 1] + 1]:
                    best = options.isolated[first]
            for k in range(i + 1, j):
                best = max(best, future[i, k] + future[k, j])
            future[i, j] = best
    return future


@exact_kernel
def score_option(automaton: Automaton, options: TranslationOptions, option: int, state: int) -> tuple[float, int]:
    """log10 of an option's words after `state`, and the state after them.

    As soon as the state is the one reached without context, the rest is known.
    """
    total = 0.0
    for j in range(options.word_offsets[option], options.word_offsets[option + 1]):
        score, state = score_word(automaton, state, options.words[j])
        total += score
        if state == options.states[j]:
            return total + options.rest[j], np.int64(options.states[options.word_offsets[option + 1] - 1])
    return total, np.int64(state)


@exact_kernel
def future_after(future: DoubleArray, before: float, gap: int, mask: int, n: int, start: int, end: int) -> float:
    """The future cost once start..end is covered too, given that `before`."""
    left = start
    while left > gap and not is_covered(gap, mask, left - 1):
        left -= 1
    right = end + 1
    while right < n and not is_covered(gap, mask, right):
        right += 1
    return before - future[left, right] + future[left, start] + future[end + 1, right]


@exact_kernel
def swap_start_of(search: Search, gap: int, mask: int, start: int) -> int:
    """`start` if a phrase ending just before it may still come (then it is a swap), else -1."""
    return start if search.reordering >= 0 and start > gap and not is_covered(gap, mask, start - 1) else NONE


@exact_kernel
def may_follow(search: Search, previous_end: int, gap: int, start: int, end: int) -> bool:
    """Moses' distortion limit: the jump itself, and the jump back to the first gap that it will take."""
    if abs(previous_end + 1 - start) > search.distortion_limit:
        return False
    if start == gap:
        return end - gap < WINDOW
    return end + 1 - gap <= search.distortion_limit


@exact_kernel
def start_pool(pool: npt.NDArray[np.void], stacks: Stacks, search: Search, future: float) -> None:
    """Put the empty hypothesis at pool[0] and on stack 0."""
    h = pool[0]
    h.score = 0.0
    h.total = future
    h.mask = 0
    h.gap = 0
    h.language_state = search.begin_state
    h.start = NONE
    h.end = NONE
    h.swap_start = NONE
    h.option = NONE
    h.back = NONE
    h.arcs = NONE
    h.forward_class = 0
    add(stacks, pool, np.int64(0), np.int64(0), search.keep_arcs)


@exact_kernel
def stack_search(
    words: Int32Array,
    index: PhraseIndex,
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
    stacks: Stacks,
) -> tuple[npt.NDArray[np.void], int]:
    """Translate one sentence.

    Returns:
        The pool, and the number of the best complete hypothesis, or -1 if there is none.
    """
    n = len(words)
    spans = find_spans(index, words)
    longest = spans.shape[1]
    future = future_costs(spans, options)
    # Language-model scores of the options of this sentence, for one state at a time.
    local = np.zeros((n, longest), np.int64)
    count = 0
    for start in range(n):
        for size in range(longest):
            local[start, size] = count
            if spans[start, size] >= 0:
                count += options.first[spans[start, size] + 1] - options.first[spans[start, size]]
    known_for = np.full(count, NONE, np.int32)
    known_scores = np.empty(count, np.float64)
    known_states = np.empty(count, np.int32)
    pool = np.empty(1 << 12, HYPOTHESIS)
    start_pool(pool, stacks, search, future[0, n])
    used = np.int64(1)
    round_ = 0
    for stack in range(n):
        alive = sorted_stack(stacks, pool, stack)
        done = np.zeros(len(alive), np.bool_)
        for a in range(len(alive)):
            if done[a]:
                continue
            state = pool[alive[a]].language_state
            round_ += 1
            for b in range(a, len(alive)):
                if done[b] or pool[alive[b]].language_state != state:
                    continue
                done[b] = True
                pool, used = _expand(
                    alive[b], pool, used, stack, spans, future, options, automaton, search, stacks, local, round_,
                    known_for, known_scores, known_states,
                )  # fmt: skip
    best = stacks.slots[n, 0]
    return pool[:used], best


@exact_kernel
def _expand(
    number: int,
    pool: npt.NDArray[np.void],
    used: int,
    stack: int,
    spans: Int32Array,
    future: DoubleArray,
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
    stacks: Stacks,
    local: npt.NDArray[np.int64],
    round_: int,
    known_for: Int32Array,
    known_scores: DoubleArray,
    known_states: Int32Array,
) -> tuple[npt.NDArray[np.void], int]:
    """Extend one hypothesis by every option that may follow it."""
    n, longest = spans.shape
    h = pool[number]
    score, gap, mask, state = h.score, h.gap, h.mask, h.language_state
    previous_start, previous_end, previous_option = h.start, h.end, h.option
    before = h.total - score
    directed = search.reordering >= 0
    for start in range(gap, min(n, max(previous_end + 1, gap) + search.distortion_limit + 1)):
        if is_covered(gap, mask, start):
            continue
        jump = abs(previous_end + 1 - start)
        if jump > search.distortion_limit:
            continue
        for end in range(start, min(start + longest, n)):
            if is_covered(gap, mask, end) or not may_follow(search, previous_end, gap, start, end):
                break
            source = spans[start, end - start]
            if source < 0:
                continue
            after = future_after(future, before, gap, mask, n, start, end)
            new_stack = stack + end - start + 1
            base = score - search.distortion_weight * jump
            orientation = 0
            if directed:
                orientation = orientation_of(search.reordering, previous_start, previous_end, start, end)
                if previous_option >= 0:
                    base += options.forward[previous_option, orientation]
            first = options.first[source]
            offset = local[start, end - start] - first
            new_gap, new_mask = cover(gap, mask, start, end)
            for option in range(first, options.first[source + 1]):
                partial = base + options.static[option]
                if directed:
                    partial += options.backward[option, orientation]
                # A language model adds nothing above 0.
                if search.language_weight >= 0 and partial + after < stacks.thresholds[new_stack]:
                    continue
                place = offset + option
                if known_for[place] != round_:
                    known_for[place] = round_
                    known_scores[place], known_states[place] = score_option(automaton, options, option, state)
                language = known_scores[place]
                new_state = known_states[place]
                if new_stack == n and options.word_offsets[option + 1] > options.word_offsets[option]:
                    # Moses does not score the sentence end after a phrase without target words.
                    language += score_word(automaton, new_state, search.end_word)[0]
                new_score = partial + language * (LN10 * search.language_weight)
                if new_score + after < stacks.thresholds[new_stack]:
                    continue
                pool = with_room(pool, used, 1)
                new = pool[used]
                new.score = new_score
                new.total = new_score + after
                new.mask = new_mask
                new.gap = new_gap
                new.language_state = new_state
                new.start = start
                new.end = end
                new.swap_start = swap_start_of(search, new_gap, new_mask, start)
                new.option = option
                new.back = number
                new.forward_class = options.forward_classes[option]
                used = add(stacks, pool, used, new_stack, search.keep_arcs)
    return pool, used
