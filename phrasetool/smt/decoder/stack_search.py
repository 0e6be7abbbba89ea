"""Stack decoding (Koehn, Och and Marcu 2003), with Moses' order of expansion, limits and pruning.

Stacks hold hypotheses by the number of source words covered.  Every hypothesis of a stack is extended by every option
of every span that it may translate next.  Language-model scores depend on the hypothesis only through its
language-model state, so hypotheses with the same state are extended one after another and share these scores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array
from phrasetool.smt.decoder.hypotheses import (
    NONE,
    Search,
    Stacks,
    add,
    best_complete,
    chains,
    chart_costs,
    cover,
    future_after,
    is_covered,
    may_follow,
    sorted_stack,
    start_pool,
    step,
    with_room,
    write_extension,
)
from phrasetool.smt.decoder.table import PhraseIndex, find_phrase
from phrasetool.smt.decoder.translation_options import TranslationOptions
from phrasetool.smt.language_model.automaton import Automaton, score_word
from phrasetool.smt.language_model.combination import (
    AUTOMATON_FIELDS,
    LACKS_ROOM,
    lacks_room,
    score_final,
    score_phrase,
)
from phrasetool.smt.language_model.ngrams import LN10


@exact_kernel
def find_spans(index: PhraseIndex, words: Int32Array) -> Int32Array:
    """Return the source phrase of each span, by start and length - 1, int32, shape (n, longest); -1 for none."""
    n = len(words)
    longest = min(n, max(index.longest[0], 1))
    spans = np.full((n, longest), NONE, np.int32)
    for start in range(n):
        for size in range(1, min(longest, n - start) + 1):
            spans[start, size - 1] = find_phrase(index, words, start, start + size)
    return spans


@exact_kernel
def future_costs(spans: Int32Array, options: TranslationOptions) -> DoubleArray:
    """Return the best isolated score of the words i..j-1 over all segmentations, float64, shape (n + 1, n + 1)."""
    best = np.full(spans.shape, -np.inf)
    for start in range(spans.shape[0]):
        for size in range(spans.shape[1]):
            source = spans[start, size]
            if source >= 0 and options.first[source] < options.first[source + 1]:
                best[start, size] = options.isolated[options.first[source]]
    return chart_costs(best)


@borrowing_kernel
def score_option(automaton: Automaton, options: TranslationOptions, option: int, state: int) -> tuple[float, int]:
    """Return log10 of an option's words after `state`, and the state after them.

    As soon as the state is the one reached from the empty context, the score of the remaining words is known.

    Args:
        automaton: as in the functions below, an `Automaton`, or a `Combination` with room for one more state.
    """
    if len(automaton) != AUTOMATON_FIELDS:
        first, last = options.word_offsets[option], options.word_offsets[option + 1]
        return score_phrase(automaton, options.words, first, last, state)
    total = 0.0
    for j in range(options.word_offsets[option], options.word_offsets[option + 1]):
        score, state = score_word(automaton, state, options.words[j])
        total += score
        if state == options.states[j]:
            return total + options.rest[j], np.int64(options.states[options.word_offsets[option + 1] - 1])
    return total, np.int64(state)


@borrowing_kernel
def _score_end(automaton: Automaton, state: int, word: int) -> tuple[float, int]:
    """Return log10 of one word after `state`, and the state after it."""
    if len(automaton) != AUTOMATON_FIELDS:
        return score_final(automaton, state, word)
    return score_word(automaton, state, word)


@inner_kernel
def with_sentence_end(
    automaton: Automaton, options: TranslationOptions, search: Search, option: int, score: float, state: int
) -> tuple[float, int]:
    """Return the language-model score of a translation that `option` completes, and the state after it.

    Args:
        score, state: without the sentence end, which Moses does not score after a phrase without target words.
    """
    if options.word_offsets[option + 1] > options.word_offsets[option]:
        last, state = _score_end(automaton, state, search.end_word)
        score += last
    return score, np.int64(state)


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
        The pool, and the number of the best complete hypothesis, or -1 if there is none, or LACKS_ROOM if
        there is no room for more language-model states.
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
    pool = start_pool(1 << 12, stacks, search, future[0, n])
    # Pool records used, the next member of a chain, chains begun in all stacks, and chains begun in this stack.
    at = np.array([1, NONE, 0, 0])
    for stack in range(n):
        alive = sorted_stack(stacks, pool, stack)
        states = np.empty(len(alive), np.int32)
        for i in range(len(alive)):
            states[i] = pool[alive[i]].language_state
        firsts, following = chains(np.zeros(len(alive), np.uint64), states)
        at[3] = 0
        while not _expand_stack(
            at, alive, firsts, following, pool, stack, spans, future, options, automaton, search, stacks, local,
            known_for, known_scores, known_states,
        ):  # fmt: skip
            pool = with_room(pool, at[0], count)
            if lacks_room(automaton, 2 * count):
                return pool[: at[0]], np.int32(LACKS_ROOM)
    return pool[: at[0]], best_complete(stacks, pool, search.keep_arcs)


@borrowing_kernel
def _expand_stack(
    at: Int64Array,
    alive: Int32Array,
    firsts: Int32Array,
    following: Int32Array,
    pool: npt.NDArray[np.void],
    stack: int,
    spans: Int32Array,
    future: DoubleArray,
    options: TranslationOptions,
    automaton: Automaton,
    search: Search,
    stacks: Stacks,
    local: Int64Array,
    known_for: Int32Array,
    known_scores: DoubleArray,
    known_states: Int32Array,
) -> bool:
    """Extend the hypotheses of a stack, chain by chain; return False when the room is used up.

    Args:
        at: pool records used, the next member of the chain that was begun last or -1, chains begun in all stacks, and
            chains begun in this stack.
        alive: the hypotheses.
        firsts, following: the hypotheses grouped by language-model state, as `chains` returns them.
    """
    # Each option of the sentence creates one record at most.
    count = len(known_for)
    used, member = at[0], at[1]
    while True:
        if member < 0:
            if at[3] == len(firsts):
                at[0], at[1] = used, NONE
                return True
            member = np.int64(firsts[at[3]])
            at[2] += 1
            at[3] += 1
        # Each option may create one state, and the sentence end another.
        if used + count > len(pool) or lacks_room(automaton, 2 * count):
            at[0], at[1] = used, member
            return False
        used = _expand(
            alive[member], pool, used, stack, spans, future, options, automaton, search, stacks, local, at[2],
            known_for, known_scores, known_states,
        )  # fmt: skip
        member = np.int64(following[member])


@inner_kernel
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
    local: Int64Array,
    round_: int,
    known_for: Int32Array,
    known_scores: DoubleArray,
    known_states: Int32Array,
) -> int:
    """Extend one hypothesis by every option that may follow it; return the number of pool records used then."""
    n, longest = spans.shape
    h = pool[number]
    score, gap, mask, state = h.score, h.gap, h.mask, h.language_state
    previous_start, previous_end, previous_option = h.start, h.end, h.option
    before = h.total - score
    directed = search.reordering >= 0
    for start in range(gap, min(n, max(previous_end + 1, gap) + search.distortion_limit + 1)):
        if is_covered(gap, mask, start):
            continue
        for end in range(start, min(start + longest, n)):
            if is_covered(gap, mask, end) or not may_follow(search, previous_end, gap, start, end):
                break
            source = spans[start, end - start]
            if source < 0:
                continue
            after = future_after(future, before, gap, mask, n, start, end)
            new_stack = stack + end - start + 1
            span = previous_start, previous_end
            base, foreseen, orientation = step(search, options.forward, score, previous_option, span, start, end)
            base += foreseen
            first = options.first[source]
            offset = local[start, end - start] - first
            coverage = cover(gap, mask, start, end)
            for option in range(first, options.first[source + 1]):
                partial = base + options.static[option]
                if directed:
                    partial += options.backward[option, orientation]
                # Log probabilities of a language model are not above 0.
                if search.language_weight >= 0 and partial + after < stacks.thresholds[new_stack]:
                    continue
                index = offset + option
                if known_for[index] != round_:
                    known_for[index] = round_
                    known_scores[index], known_states[index] = score_option(automaton, options, option, state)
                language = known_scores[index]
                new_state = known_states[index]
                if new_stack == n:
                    language, new_state = with_sentence_end(automaton, options, search, option, language, new_state)
                new_score = partial + language * (LN10 * search.language_weight)
                if new_score + after < stacks.thresholds[new_stack]:
                    continue
                write_extension(
                    pool[used], search, number, option, start, end, new_score, after, coverage, new_state,
                    options.forward_classes[option],
                )  # fmt: skip
                used = add(stacks, pool, used, new_stack, search.keep_arcs)
    return np.int64(used)
