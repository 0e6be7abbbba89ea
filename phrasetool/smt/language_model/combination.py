"""Decoding with several language models, or with one that is not an automaton: states are created when reached.

A state is a row of `contexts`, which holds the context of each model side by side: for an automaton its state, for a
kenlm model the words and back-offs of its context.  Equivalent rows are one state, so that a decoder recombines
hypotheses as Moses does, when the states of all models are equal.  The score of a word is the weighted sum of the
models' scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Phrases, prefix_sums
from phrasetool.smt.language_model.automaton import UNKNOWN_ID, Automaton, LanguageModel, score_word
from phrasetool.smt.language_model.hashed import LAYOUT_WIDTH, TABLES, UNIGRAMS, HashedModel, Words32, read_hashed
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, LN10, UNKNOWN_WORD, SearchedModel

NONE = -1
# Returned by a search instead of its best hypothesis if it needs more room for states.
LACKS_ROOM = -2
# Rows that are not states: two working rows, and the empty context.
_BEFORE, _AFTER, EMPTY, FIRST_STATE = range(4)


class Combination(NamedTuple):
    """The arrays of K models; V words, R rows of W numbers, P slots.

    Attributes:
        weights: float64, shape (K,).
        ids: int32, shape (K, V): the id of each word in each model.
        hashed: bool, shape (K,): whether a model is in `memory`; otherwise it is one of the automata.
        places: int64, shape (K + 1,): offset in a row of each model's context, and the end of the last.
        parts: int64, shape (K + 1, 3): offsets of the arc slots, words and states of each model in the arrays that
            follow, and the ends of the last.
        arcs, arc_scores, arc_states, word_scores, word_states, signatures, backoffs, failures: of the automata, one
            after the other.
        memory: uint32, of the other models; numbers: float32, the same memory.
        layouts: int64, shape (K, LAYOUT_WIDTH), of the other models.
        contexts: int32, shape (R * W,); context_backoffs: float32, the same memory.
        slots: int32, shape (P,), P = 2 R, a power of two: states by hash, -1 where free.
        used: int64, shape (1,): number of rows used.
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


# Numba knows the length of a tuple at compile time, and omits the branches for other lengths.
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
    """Return log10 of a word by one model in the context of a row, and write the new context to another row."""
    width, offset = c.places[len(c.places) - 1], c.places[k]
    if c.hashed[k]:
        return read_hashed(
            c.memory, c.numbers, c.layouts[k], c.contexts, c.context_backoffs, row * width + offset,
            after * width + offset, c.ids[k, word],
        )  # fmt: skip
    score, state = score_word(_automaton_of(c, k), c.contexts[row * width + offset], c.ids[k, word])
    c.contexts[after * width + offset] = state
    return score


@borrowing_kernel
def read_word(c: Combination, row: int, after: int, word: int) -> float:
    """Score a word by all models in the context of a row, and write their new contexts to another row.

    Returns:
        The weighted sum of their log10 scores, float64.
    """
    total = 0.0
    for k in range(len(c.weights)):
        total += c.weights[k] * _read(c, k, row, after, word)
    return total


@borrowing_kernel
def _kept(c: Combination, k: int, row: int) -> int:
    """Return how many numbers of a row distinguish a model's state from its other states."""
    if c.hashed[k]:
        return 1 + np.int64(c.contexts[row * c.places[len(c.places) - 1] + c.places[k]])
    return np.int64(1)


@borrowing_kernel
def _slot(c: Combination, row: int) -> int:
    """Return the slot of the state that equals a row, or the free slot for it."""
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
            # The first number that a hashed model keeps is the number of the others.
            for i in range(_kept(c, k, row)):
                column = c.places[k] + i
                same = same and c.contexts[row * width + column] == c.contexts[state * width + column]
        if same:
            return slot
        slot = (slot + 1) & last


@borrowing_kernel
def state_of(c: Combination, row: int) -> int:
    """Return the state of a row, created if it is new; there must be room for one more."""
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
    """Return the score of words[first:last] after a state, and the next state; there must be room for one more."""
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
    """Return the score of one word after a state, and the next state; there must be room for one more."""
    score = read_word(c, state, _AFTER, word)
    return score, state_of(c, _AFTER)


@borrowing_kernel
def lacks_room(model: Combination, states: int) -> bool:
    """Return whether room for `states` more states may be missing; an automaton has all states from the start."""
    if len(model) == AUTOMATON_FIELDS:
        return False
    return model.used[0] + states > len(model.slots) >> 1


@exact_kernel
def score_phrases(c: Combination, offsets: Int64Array, words: Int32Array, scores: DoubleArray) -> None:
    """Set scores[i, k] to log10 of phrase i by model k, from the empty context."""
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
    """Set scores[i, k] to the natural logarithm of sentence i by model k; see `TargetModel.sentences`."""
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


class LanguageModels:
    """K language models of one language, of which a search uses the weighted sum.

    Args:
        models: automata or kenlm's hash tables; all have `<s>` and `</s>`.
        vocabulary: the words that will be looked up; all others become unknown.

    Attributes:
        words: the words in id order, `<unk>` first.

    Raises:
        ValueError: a model is damaged.
    """

    def __init__(self, models: Sequence[LanguageModel | HashedModel], vocabulary: Collection[bytes]) -> None:
        self.words = list(dict.fromkeys([UNKNOWN_WORD, BEGIN_WORD, END_WORD, *vocabulary]))
        self._ids = {word: i for i, word in enumerate(self.words)}
        self.end_word = self._ids[END_WORD]
        ids = np.stack([model.ids(self.words) for model in models])
        self._combination = begun = _combined(models, ids)
        read_word(begun, EMPTY, FIRST_STATE, self._ids[BEGIN_WORD])
        # kenlm keeps the back-off of the beginning of a sentence even if no n-gram begins with it (lm/model.cc).
        begun.contexts[FIRST_STATE * begun.places[-1] + begun.places[:-1][begun.hashed]] = 1

    def ids(self, words: Iterable[bytes]) -> Int32Array:
        """Return the ids of words, int32; 0 for words that no model knows."""
        return np.array([self._ids.get(word, UNKNOWN_ID) for word in words], np.int32)

    def known(self, words: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return which model has which word, bool, shape (K, W)."""
        return np.asarray(self._combination.ids[:, self.ids(words)] != UNKNOWN_ID)

    def isolated(self, phrases: Phrases) -> DoubleArray:
        """Return log10 of N phrases from the empty context, float64, shape (N, K)."""
        scores = np.empty((len(phrases), len(self._combination.weights)))
        score_phrases(self._private(), phrases.offsets, phrases.words, scores)
        return scores

    def walked(self, phrases: Phrases) -> tuple[Int32Array, DoubleArray]:
        """Return -1 and 0 for each word: states are created during a search, so none is known beforehand."""
        return np.full(len(phrases.words), NONE, np.int32), np.zeros(len(phrases.words))

    def sentences(self, offsets: Int64Array, chosen: Int32Array, phrases: Phrases) -> DoubleArray:
        """Return natural logarithms of N sentences, float64, shape (N, K); arguments as in `TargetModel.sentences`."""
        scores = np.empty((len(offsets) - 1, len(self._combination.weights)))
        score_sentences(self._private(), self.end_word, offsets, chosen, phrases.offsets, phrases.words, scores)
        return scores

    def searched(self, weights: DoubleArray, room: int) -> SearchedModel:
        """Return a private copy of the models for one search, with room for `room` states."""
        # A search may assume that scores with a weight of 1 are not above 0.
        sign = 1.0 if (weights >= 0).all() else -1.0
        model = self._private(room)._replace(weights=np.ascontiguousarray(sign * weights, np.float64))
        return SearchedModel(model, sign, FIRST_STATE, self.end_word)

    def _private(self, room: int = 0) -> Combination:
        """Copy the models with separate states, because threads search in parallel, and room for `room` more."""
        shared = self._combination
        rows = 1 << (int(shared.used[0]) + room - 1).bit_length()
        contexts = np.empty(rows * int(shared.places[-1]), np.int32)
        contexts[: len(shared.contexts)] = shared.contexts
        # `lacks_room` allows half of the slots to be used.
        slots = np.full(2 * rows, NONE, np.int32)
        return shared._replace(
            contexts=contexts, context_backoffs=contexts.view(np.float32), slots=slots, used=shared.used.copy()
        )


def _combined(models: Sequence[LanguageModel | HashedModel], ids: Int32Array) -> Combination:
    """Return the models in arrays for kernels, with weights of 1 and no states."""
    count = len(models)
    hashed = np.array([isinstance(model, HashedModel) for model in models])
    widths = [2 * model.order - 1 if isinstance(model, HashedModel) else 1 for model in models]
    automata = [model.automaton for model in models if isinstance(model, LanguageModel)]
    parts = np.zeros((count + 1, 3), np.int64)
    for k, model in enumerate(models):
        sizes = (0, 0, 0)
        if isinstance(model, LanguageModel):
            a = model.automaton
            sizes = len(a.arcs) // 2, len(a.word_scores) // 2, len(a.signatures) // 2
        parts[k + 1] = parts[k] + sizes
    arcs = _joined([automaton.arcs for automaton in automata], np.int64)
    words = _joined([automaton.word_scores for automaton in automata], np.float32)
    states = _joined([automaton.signatures for automaton in automata], np.int64)
    memory, layouts = _joined_memory(models)
    offsets = prefix_sums(widths)
    contexts = np.zeros((FIRST_STATE + 1) * offsets[-1], np.int32)
    return Combination(
        np.ones(count), np.ascontiguousarray(ids), hashed, offsets, parts,
        arcs, arcs.view(np.float32), arcs.view(np.int32), words, words.view(np.int32),
        states, states.view(np.float32), states.view(np.int32),
        memory, memory.view(np.float32), layouts,
        contexts, contexts.view(np.float32), np.full(2, NONE, np.int32), np.array([FIRST_STATE + 1]),
    )  # fmt: skip


def _joined(arrays: Sequence[np.ndarray], kind: npt.DTypeLike) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros(0, kind), *arrays])


def _joined_memory(models: Sequence[LanguageModel | HashedModel]) -> tuple[np.ndarray, np.ndarray]:
    """Return the joined memory of hashed models, without a copy for a single one, and their layouts in it."""
    layouts = np.zeros((len(models), LAYOUT_WIDTH), np.int64)
    parts, first = [], 0
    for k, model in enumerate(models):
        if isinstance(model, HashedModel):
            layouts[k] = model.layout
            # Shift the positions, but not the order and the numbers of slots.
            layouts[k, UNIGRAMS] += first
            layouts[k, TABLES::2] += first
            parts.append(model.memory)
            first += len(model.memory)
    memory = _joined(parts, np.uint32)
    memory.flags.writeable = False
    return memory, layouts
