"""Several language models, or one that is not an automaton, in a search: states are made when they are reached.

A state is a row of `contexts`: what each model keeps of the words so far, side by side; for an automaton its state, for
a model of kenlm's the words and back-offs of its context.  Rows that mean the same are one state, so that a decoder
recombines as Moses does, when the states of all models are equal.  The score of a word is the weighted sum of the
models' scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array
from phrasetool.smt.language_model.automaton import Automaton, score_word
from phrasetool.smt.language_model.hashed import Words32, read_hashed
from phrasetool.smt.language_model.ngrams import LN10

NONE = -1
# Returned by a search instead of its best hypothesis where it needs more room for states.
LACKS_ROOM = -2
# Rows that are not states: two working rows, and the empty context.
_BEFORE, _AFTER, EMPTY, FIRST_STATE = range(4)


class Combination(NamedTuple):
    """K models; V words, R rows of W numbers, P slots.

    Attributes:
        weights: float64, shape (K,).
        ids: int32, shape (K, V): what each model calls a word.
        hashed: bool, shape (K,): whether a model is one of `memory`; else it is one of the automata.
        places: int64, shape (K + 1,): where in a row what each model keeps begins, and where the last ends.
        parts: int64, shape (K + 1, 3): where the slots of arcs, the words and the states of each model begin in the
            arrays that follow, and where the last end.
        arcs, arc_scores, arc_states, word_scores, word_states, signatures, backoffs, failures: of the automata, one
            after the other.
        memory: uint32, of the other models; numbers: float32, the same.
        layouts: int64, shape (K, LAYOUT_WIDTH), of the other models.
        contexts: int32, shape (R * W,); context_backoffs: float32, the same memory.
        slots: int32, shape (P,), P = 2 R, a power of two: states by hash, -1 where free.
        used: int64, shape (1,): rows that are used.
    """

    weights: DoubleArray
    ids: Int32Array
    hashed: npt.NDArray[np.bool_]
    places: Int64Array
    parts: Int64Array
    arcs: Int64Array
    arc_scores: FloatArray
    arc_states: Int32Array
    word_scores: FloatArray
    word_states: Int32Array
    signatures: Int64Array
    backoffs: FloatArray
    failures: Int32Array
    memory: Words32
    numbers: FloatArray
    layouts: Int64Array
    contexts: Int32Array
    context_backoffs: FloatArray
    slots: Int32Array
    used: Int64Array


# Numba knows how long a tuple is when it compiles, and leaves out what is there for another.
AUTOMATON_FIELDS = len(Automaton._fields)


@borrowing_kernel
def _automaton_of(c: Combination, k: int) -> Automaton:
    slot, last_slot = c.parts[k, 0], c.parts[k + 1, 0]
    word, last_word = c.parts[k, 1], c.parts[k + 1, 1]
    state, last_state = c.parts[k, 2], c.parts[k + 1, 2]
    return Automaton(
        c.arcs[2 * slot : 2 * last_slot], c.arc_scores[4 * slot : 4 * last_slot],
        c.arc_states[4 * slot : 4 * last_slot],
        c.word_scores[2 * word : 2 * last_word], c.word_states[2 * word : 2 * last_word],
        c.signatures[2 * state : 2 * last_state], c.backoffs[4 * state : 4 * last_state],
        c.failures[4 * state : 4 * last_state], np.uint64(last_slot - slot),
    )  # fmt: skip


@borrowing_kernel
def _read(c: Combination, k: int, row: int, after: int, word: int) -> float:
    """Have one model read a word in the context of a row, and write what it keeps to another row; log10."""
    width, place = c.places[len(c.places) - 1], c.places[k]
    if c.hashed[k]:
        return read_hashed(
            c.memory, c.numbers, c.layouts[k], c.contexts, c.context_backoffs, row * width + place,
            after * width + place, c.ids[k, word],
        )  # fmt: skip
    score, state = score_word(_automaton_of(c, k), c.contexts[row * width + place], c.ids[k, word])
    c.contexts[after * width + place] = state
    return score


@borrowing_kernel
def read_word(c: Combination, row: int, after: int, word: int) -> float:
    """Have all models read a word in the context of a row; what they keep goes to another row.

    Returns:
        The weighted sum of their log10 scores, float64.
    """
    total = 0.0
    for k in range(len(c.weights)):
        total += c.weights[k] * _read(c, k, row, after, word)
    return total


@borrowing_kernel
def _kept(c: Combination, k: int, row: int) -> int:
    """How many numbers of a row distinguish a model's state from its other states."""
    if c.hashed[k]:
        return 1 + np.int64(c.contexts[row * c.places[len(c.places) - 1] + c.places[k]])
    return np.int64(1)


@borrowing_kernel
def _slot(c: Combination, row: int) -> int:
    """The slot of the state that equals a row, or the free one for it."""
    width = c.places[len(c.places) - 1]
    key = GOLDEN
    for k in range(len(c.weights)):
        first = row * width + c.places[k]
        for i in range(_kept(c, k, row)):
            key = mix(key, c.contexts[first + i])
    last = len(c.slots) - 1
    slot = np.int64(key & np.uint64(last))
    while True:
        state = np.int64(c.slots[slot])
        if state < 0:
            return slot
        same = True
        for k in range(len(c.weights)):
            # Of a hashed model, the first number that is kept is the number of the others.
            for i in range(_kept(c, k, row)):
                place = c.places[k] + i
                same = same and c.contexts[row * width + place] == c.contexts[state * width + place]
        if same:
            return slot
        slot = (slot + 1) & last


@borrowing_kernel
def state_of(c: Combination, row: int) -> int:
    """The state that a row is; there must be room for one more."""
    slot = _slot(c, row)
    if c.slots[slot] >= 0:
        return np.int64(c.slots[slot])
    state = c.used[0]
    width = c.places[len(c.places) - 1]
    for i in range(width):
        c.contexts[state * width + i] = c.contexts[row * width + i]
    c.slots[slot] = state
    c.used[0] += 1
    return np.int64(state)


@borrowing_kernel
def score_phrase(c: Combination, words: Int32Array, first: int, last: int, state: int) -> tuple[float, int]:
    """The score of words[first:last] after a state, and the state behind them; there must be room for one more."""
    total = 0.0
    row, after = np.int64(state), np.int64(_BEFORE)
    for j in range(first, last):
        total += read_word(c, row, after, words[j])
        row, after = after, np.int64(_BEFORE + _AFTER) - after
    if last == first:
        return total, np.int64(state)
    return total, state_of(c, row)


@borrowing_kernel
def score_final(c: Combination, state: int, word: int) -> tuple[float, int]:
    """The score of one word after a state, and the state behind it; there must be room for one more."""
    score = read_word(c, state, _AFTER, word)
    return score, state_of(c, _AFTER)


@borrowing_kernel
def lacks_room(model: Combination, states: int) -> bool:
    """Whether room for `states` more states may be missing; an automaton has all its states from the start."""
    if len(model) == AUTOMATON_FIELDS:
        return False
    return model.used[0] + states > len(model.slots) >> 1


@exact_kernel
def score_phrases(c: Combination, offsets: Int64Array, words: Int32Array, scores: DoubleArray) -> None:
    """scores[i, k] = log10 of phrase i by model k, from the empty context."""
    for i in range(len(offsets) - 1):
        for k in range(len(c.weights)):
            row, after = np.int64(EMPTY), np.int64(_BEFORE)
            total = 0.0
            for j in range(offsets[i], offsets[i + 1]):
                total += _read(c, k, row, after, words[j])
                row, after = after, np.int64(_BEFORE + _AFTER) - after
            scores[i, k] = total


@exact_kernel
def score_sentences(
    c: Combination,
    end_word: int,
    offsets: Int64Array,
    chosen: Int32Array,
    word_offsets: Int64Array,
    words: Int32Array,
    scores: DoubleArray,
) -> None:
    """scores[i, k] = natural logarithm of sentence i by model k; see `TargetModel.sentences`."""
    for i in range(len(offsets) - 1):
        for k in range(len(c.weights)):
            row, after = np.int64(FIRST_STATE), np.int64(_BEFORE)
            total, empty = 0.0, True
            for p in range(offsets[i], offsets[i + 1]):
                first, last = word_offsets[chosen[p]], word_offsets[chosen[p] + 1]
                empty = first == last
                for j in range(first, last):
                    total += _read(c, k, row, after, words[j])
                    row, after = after, np.int64(_BEFORE + _AFTER) - after
            if not empty:
                total += _read(c, k, row, after, end_word)
            scores[i, k] = total * LN10
