"""A back-off model as a weighted automaton with failure transitions, in flat arrays for kernels.

A state is a context.  Reading a word follows the arc (state, word) if it exists; otherwise it adds the back-off of the
state and tries the failure state (the context without its oldest words).  State 0, the empty context, has an arc for
every word.  Only contexts that make a difference are states: an n-gram that no longer n-gram extends and whose back-off
is exactly 0 behaves like its suffix and has the suffix's state (kenlm's state minimisation: Heafield 2011, "KenLM:
faster and smaller language model queries", section 4.1), so a decoder recombines as much as possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.hashing import GOLDEN, NO_KEY, find_key, home
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, LN10, BackoffModel, NgramTable, SearchedModel

UNKNOWN_ID = 0
_FREE = -1
# Arcs per slot: half of the slots are free, so that a successful search takes 1.5 slots on average.
_LOAD = 0.5
_WORD_BITS = np.uint64(32)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_FOUR = np.uint64(4)

OK, NO_CONTEXT, REPEATED = range(3)


class Automaton(NamedTuple):
    """The arrays of an automaton that `score_word` reads; S states, V words, P slots.

    Attributes:
        arcs: int64, shape (2 P,): an open-addressing table of the arcs of all states except 0; a slot is a key,
            `state << 32 | word` or -1, and 8 bytes that the next two attributes describe.
        arc_scores: float32, shape (4 P,), the same memory: element 4 i + 2 is the log10 probability in slot i.
        arc_states: int32, shape (4 P,), the same memory: element 4 i + 3 is the next state in slot i.
        word_scores: float32, shape (2 V,): element 2 w is the log10 probability of w in state 0.
        word_states: int32, shape (2 V,), the same memory: element 2 w + 1 is the state after w from state 0.
        signatures: int64, shape (2 S,): element 2 s has a bit for every word that state s has an arc for; most states
            have few arcs, so most lookups of words without an arc need not read the arcs.  The next two attributes
            describe the other 8 bytes.
        backoffs: float32, shape (4 S,), the same memory: element 4 s + 2 is the log10 back-off of state s.
        failures: int32, shape (4 S,), the same memory: element 4 s + 3 is the failure state of s.
        slots: uint64, P.
    """

    arcs: Int64Array
    arc_scores: FloatArray
    arc_states: Int32Array
    word_scores: FloatArray
    word_states: Int32Array
    signatures: Int64Array
    backoffs: FloatArray
    failures: Int32Array
    slots: np.uint64


@borrowing_kernel
def _bit(word: int) -> int:
    """Return the position of a word's bit in a signature."""
    return (np.uint64(word) * GOLDEN) >> np.uint64(58)


@borrowing_kernel
def score_word(automaton: Automaton, state: int, word: int) -> tuple[float, int]:
    """Read one word; for use inside other kernels.

    Args:
        automaton: of a `LanguageModel`.
        state: the state to start from: one that the same automaton returned, its begin state or 0.
        word: an id of the language model.  State and word are not checked.

    Returns:
        log10 of the word's probability, float32, and the next state, int64.
    """
    total = np.float32(0.0)
    context = np.uint64(state)
    unsigned = np.uint64(word)
    bit = _bit(word)
    while context != 0:
        if (np.uint64(automaton.signatures[_TWO * context]) >> bit) & _ONE:
            key = context << _WORD_BITS | unsigned
            slot = np.uint64(home(key, automaton.slots))
            while True:
                stored_key = automaton.arcs[_TWO * slot]
                if stored_key == np.int64(key):
                    score = total + automaton.arc_scores[_FOUR * slot + _TWO]
                    return score, np.int64(automaton.arc_states[_FOUR * slot + _THREE])
                if stored_key < 0:
                    break
                slot += _ONE
                if slot == automaton.slots:
                    slot = np.uint64(0)
        total += automaton.backoffs[_FOUR * context + _TWO]
        context = np.uint64(automaton.failures[_FOUR * context + _THREE])
    return total + automaton.word_scores[_TWO * unsigned], np.int64(automaton.word_states[_TWO * unsigned + _ONE])


@exact_kernel
def _score_in_isolation(automaton: Automaton, offsets: Int64Array, words: Int32Array, scores: DoubleArray) -> None:
    """Set scores[i] to log10 of phrase i, from the empty context."""
    for i in range(len(scores)):
        total = 0.0
        state = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            score, state = score_word(automaton, state, words[j])
            total += score
        scores[i] = total


@exact_kernel
def _walk_phrases(
    automaton: Automaton, offsets: Int64Array, words: Int32Array, states: Int32Array, rest: DoubleArray
) -> None:
    for i in range(len(offsets) - 1):
        state = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            score, state = score_word(automaton, state, words[j])
            rest[j] = score
            states[j] = state
        total = 0.0
        for j in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            score = rest[j]
            rest[j] = total
            total += score


@exact_kernel
def _score_sentences(
    automaton: Automaton,
    begin_state: int,
    end_word: int,
    offsets: Int64Array,
    chosen: Int32Array,
    word_offsets: Int64Array,
    words: Int32Array,
    scores: DoubleArray,
) -> None:
    """Set scores[i] to the natural logarithm of sentence i; see `TargetModel.sentences`."""
    for i in range(len(scores)):
        state = np.int64(begin_state)
        total, empty = 0.0, True
        for p in range(offsets[i], offsets[i + 1]):
            first, last = word_offsets[chosen[p]], word_offsets[chosen[p] + 1]
            empty = first == last
            for j in range(first, last):
                score, state = score_word(automaton, state, words[j])
                total += score * LN10
        if not empty:
            total += score_word(automaton, state, end_word)[0] * LN10
        scores[i] = total


@inner_kernel
def _find(keys: npt.NDArray[np.uint64], node: int, word: int) -> int:
    """Return the slot of the n-gram node + word, or the free slot for it."""
    return find_key(keys, np.uint64(node) << _WORD_BITS | np.uint64(word))


@exact_kernel
def _enter(
    words: Int32Array,
    first: int,
    keys: npt.NDArray[np.uint64],
    nodes: Int64Array,
    contexts: Int32Array,
    suffixes: Int32Array,
) -> tuple[int, int]:
    """Enter the n-grams of one order as the nodes first, first + 1, ...; shorter ones have been entered.

    Returns:
        OK or the kind of error, and the row of the error.
    """
    order = words.shape[1]
    for row in range(len(words)):
        context = 1 + np.int64(words[row, 0])
        for k in range(1, order - 1):
            slot = _find(keys, context, words[row, k])
            if keys[slot] == NO_KEY:
                return NO_CONTEXT, row
            context = nodes[slot]
        word = words[row, order - 1]
        slot = _find(keys, context, word)
        if keys[slot] != NO_KEY:
            return REPEATED, row
        keys[slot] = np.uint64(context) << _WORD_BITS | np.uint64(word)
        nodes[slot] = first + row
        contexts[first + row] = context
        # The longest suffix that is an n-gram: a suffix of the context, as long as possible, with the word.
        suffix = np.int64(suffixes[context])
        longest_suffix = 1 + np.int64(word)
        while suffix != 0:
            slot = _find(keys, suffix, word)
            if keys[slot] != NO_KEY:
                longest_suffix = nodes[slot]
                break
            suffix = np.int64(suffixes[suffix])
        suffixes[first + row] = longest_suffix
    return OK, 0


@exact_kernel
def _number_states(matters: npt.NDArray[np.bool_], suffixes: Int32Array, states: Int32Array) -> int:
    """Set states[node] to a new state if `matters`, else to that of the suffix; return the number of states."""
    count = 1
    states[0] = 0
    for node in range(1, len(states)):
        if node < len(matters) and matters[node]:
            states[node] = count
            count += 1
        else:
            states[node] = states[suffixes[node]]
    return count


@exact_kernel
def _fill_arcs(
    arcs: Int64Array,
    arc_scores: FloatArray,
    arc_states: Int32Array,
    words: Int32Array,
    contexts: Int32Array,
    states: Int32Array,
    scores: FloatArray,
    signatures: Int64Array,
    first: int,
) -> None:
    slots = np.uint64(len(arcs) // 2)
    for row in range(len(words)):
        state = np.int64(states[contexts[first + row]])
        signatures[2 * state] |= np.int64(_ONE << _bit(words[row]))
        key = state << 32 | np.int64(words[row])
        slot = home(key, slots)
        while arcs[2 * slot] >= 0:
            slot = slot + 1 if slot + 1 < len(arcs) // 2 else 0
        arcs[2 * slot] = key
        arc_scores[4 * slot + 2] = scores[row]
        arc_states[4 * slot + 3] = states[first + row]


class NgramError(ValueError):
    """An n-gram that a back-off model cannot hold.

    Attributes:
        order: its length.
        row: its row in the table of that order.
        lacks_context: whether the model lacks the n-gram of its first words.
    """

    def __init__(self, order: int, row: int, message: str, lacks_context: bool = False) -> None:
        self.order = order
        self.row = row
        self.lacks_context = lacks_context
        super().__init__(message)


def build_automaton(tables: Sequence[NgramTable]) -> Automaton:
    """Turn the tables of a back-off model into an automaton.

    Args:
        tables: as in `BackoffModel`; that of order 1 holds the words in id order.

    Raises:
        NgramError: a table lacks the n-gram of the first n - 1 words of an n-gram, or an n-gram occurs twice.
    """
    sizes = [len(table) for table in tables]
    firsts = [1, *(1 + np.cumsum(sizes)).tolist()]
    capacity = 1 << max(2 * sum(sizes[1:]), 1).bit_length()
    keys = np.zeros(capacity, np.uint64)
    nodes = np.empty(capacity, np.int64)
    contexts = np.zeros(firsts[-1], np.int32)
    suffixes = np.zeros(firsts[-1], np.int32)
    for order, table in enumerate(tables[1:], 2):
        wrong, row = _enter(np.ascontiguousarray(table.words), firsts[order - 1], keys, nodes, contexts, suffixes)
        if wrong == NO_CONTEXT:
            message = f"the first {order - 1} words of this {order}-gram are not listed as a {order - 1}-gram"
            raise NgramError(order, row, message, lacks_context=True)
        if wrong == REPEATED:
            raise NgramError(order, row, f"this {order}-gram occurs twice")
    del keys, nodes
    # Contexts: the empty one, and all n-grams but the longest.
    matters = np.zeros(firsts[-2] if len(tables) > 1 else 1, np.bool_)
    matters[contexts[firsts[1] :]] = True
    backoffs = np.zeros(len(matters), np.float32)
    for order, table in enumerate(tables[:-1], 1):
        backoffs[firsts[order - 1] : firsts[order]] = table.backoffs
    matters |= backoffs != 0
    matters[0] = True
    states = np.empty(firsts[-1], np.int32)
    _number_states(matters, suffixes, states)
    real = np.flatnonzero(matters)
    signatures = np.zeros(2 * len(real), np.int64)
    signatures.view(np.float32)[2::4] = backoffs[real]
    signatures.view(np.int32)[3::4] = states[suffixes[real]]
    words = np.empty(2 * len(tables[0]), np.float32)
    words[::2] = tables[0].log_probabilities
    words.view(np.int32)[1::2] = states[1 : firsts[1]]

    slots = int(sum(sizes[1:]) / _LOAD) + 1
    arcs = np.full(2 * slots, _FREE, np.int64)
    arc_scores, arc_states = arcs.view(np.float32), arcs.view(np.int32)
    for first, table in zip(firsts[1:], tables[1:], strict=False):
        last_words = np.ascontiguousarray(table.words[:, -1])
        scores = np.ascontiguousarray(table.log_probabilities, np.float32)
        _fill_arcs(arcs, arc_scores, arc_states, last_words, contexts, states, scores, signatures, first)
    return Automaton(
        arcs, arc_scores, arc_states,
        words, words.view(np.int32),
        signatures, signatures.view(np.float32), signatures.view(np.int32),
        np.uint64(slots),
    )  # fmt: skip


class LanguageModel:
    """A language model for decoding: the automaton, and the ids of its words.

    Args:
        model: the tables; must contain `<s>` and `</s>`.

    Attributes:
        words: the words in id order; `words[0]` is `<unk>`.
        order: length of its longest n-grams.
        automaton: the automaton for `score_word`.
        begin_state: the state after `<s>`.
        end_word: the id of `</s>`.

    Raises:
        NgramError: see `build_automaton`.
        ValueError: the model has no `<s>` or no `</s>`.
    """

    def __init__(self, model: BackoffModel) -> None:
        self.words = model.words
        self.order = model.order
        self._ids = {word: i for i, word in enumerate(model.words)}
        for marker in (BEGIN_WORD, END_WORD):
            if marker not in self._ids:
                raise ValueError(f"the language model has no {marker.decode()}")
        self.automaton = build_automaton(model.tables)
        self.begin_state = int(self.automaton.word_states[2 * self._ids[BEGIN_WORD] + 1])
        self.end_word = self._ids[END_WORD]

    def ids(self, words: Iterable[bytes]) -> Int32Array:
        """Return the ids of words, int32; 0, the id of `<unk>`, for words that the model does not have."""
        return np.array([self._ids.get(word, UNKNOWN_ID) for word in words], np.int32)

    def known(self, words: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return which words the model has, bool, shape (1, W)."""
        return self.ids(words)[None] != UNKNOWN_ID

    def isolated(self, phrases: Phrases) -> DoubleArray:
        """Return log10 of N phrases from the empty context, float64, shape (N, 1)."""
        scores = np.empty(len(phrases), np.float64)
        _score_in_isolation(self.automaton, phrases.offsets, phrases.words, scores)
        return scores[:, None]

    def walked(self, phrases: Phrases) -> tuple[Int32Array, DoubleArray]:
        """Return the state after each word and log10 of the words that follow, shape (W,) each."""
        states, rest = np.empty(len(phrases.words), np.int32), np.empty(len(phrases.words), np.float64)
        _walk_phrases(self.automaton, phrases.offsets, phrases.words, states, rest)
        return states, rest

    def sentences(self, offsets: Int64Array, chosen: Int32Array, phrases: Phrases) -> DoubleArray:
        """Return natural logarithms of N sentences, float64, shape (N, 1); arguments as in `TargetModel.sentences`."""
        scores = np.empty(len(offsets) - 1, np.float64)
        _score_sentences(
            self.automaton, self.begin_state, self.end_word, offsets, chosen, phrases.offsets, phrases.words, scores
        )
        return scores[:, None]

    def searched(self, weights: DoubleArray, room: int) -> SearchedModel:
        """Return the automaton with its one weight; all states exist, so it needs no room."""
        return SearchedModel(self.automaton, float(weights[0]), self.begin_state, self.end_word)
