"""Decoding with several language models, or with one that is not an automaton."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Phrases, prefix_sums
from phrasetool.smt.language_model.automaton import UNKNOWN_ID, LanguageModel
from phrasetool.smt.language_model.combination import (
    EMPTY,
    FIRST_STATE,
    NONE,
    Combination,
    read_word,
    score_phrases,
    score_sentences,
)
from phrasetool.smt.language_model.hashed import LAYOUT_WIDTH, TABLES, UNIGRAMS, HashedModel
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, UNKNOWN_WORD
from phrasetool.smt.language_model.target_model import SearchedModel


class LanguageModels:
    """K language models of one language, of which a search sees the weighted sum.

    Args:
        models: each an automaton, or as kenlm has it in its hash tables; all have `<s>` and `</s>`.
        vocabulary: the words they will be asked for; all others become unknown.

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
        # Of the begin of a sentence kenlm keeps its back-off, even if no n-gram begins with it (lm/model.cc).
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
        """Return -1 and 0 for each word: states are made during a search, so none is known beforehand."""
        return np.full(len(phrases.words), NONE, np.int32), np.zeros(len(phrases.words))

    def sentences(self, offsets: Int64Array, chosen: Int32Array, phrases: Phrases) -> DoubleArray:
        """Return natural logarithms of N sentences, float64, shape (N, K); arguments as of `TargetModel.sentences`."""
        scores = np.empty((len(offsets) - 1, len(self._combination.weights)))
        score_sentences(self._private(), self.end_word, offsets, chosen, phrases.offsets, phrases.words, scores)
        return scores

    def searched(self, weights: DoubleArray, room: int) -> SearchedModel:
        """Return a private copy of the models for one search, with room for `room` states."""
        # A search may take it for granted that scores with a weight of 1 are not above 0.
        sign = 1.0 if (weights >= 0).all() else -1.0
        model = self._private(room)._replace(weights=np.ascontiguousarray(sign * weights, np.float64))
        return SearchedModel(model, sign, FIRST_STATE, self.end_word)

    def _private(self, room: int = 0) -> Combination:
        """Copy the models with their own states, as threads search in parallel, and with room for `room` more."""
        shared = self._combination
        rows = 1 << (int(shared.used[0]) + room - 1).bit_length()
        contexts = np.empty(rows * int(shared.places[-1]), np.int32)
        contexts[: len(shared.contexts)] = shared.contexts
        # `lacks_room` lets half of the slots be taken.
        slots = np.full(2 * rows, NONE, np.int32)
        return shared._replace(
            contexts=contexts, context_backoffs=contexts.view(np.float32), slots=slots, used=shared.used.copy()
        )


def _combined(models: Sequence[LanguageModel | HashedModel], ids: Int32Array) -> Combination:
    """The models in the arrays that kernels walk, with weights of 1 and no states."""
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
    places = prefix_sums(widths)
    contexts = np.zeros((FIRST_STATE + 1) * places[-1], np.int32)
    return Combination(
        np.ones(count), np.ascontiguousarray(ids), hashed, places, parts,
        arcs, arcs.view(np.float32), arcs.view(np.int32), words, words.view(np.int32),
        states, states.view(np.float32), states.view(np.int32),
        memory, memory.view(np.float32), layouts,
        contexts, contexts.view(np.float32), np.full(2, NONE, np.int32), np.array([FIRST_STATE + 1]),
    )  # fmt: skip


def _joined(arrays: Sequence[np.ndarray], kind: npt.DTypeLike) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros(0, kind), *arrays])


def _joined_memory(models: Sequence[LanguageModel | HashedModel]) -> tuple[np.ndarray, np.ndarray]:
    """The memory of hashed models, that of a single one as it is, and their layouts in it."""
    layouts = np.zeros((len(models), LAYOUT_WIDTH), np.int64)
    parts, first = [], 0
    for k, model in enumerate(models):
        if isinstance(model, HashedModel):
            layouts[k] = model.layout
            # Places, but not the order and the numbers of slots.
            layouts[k, UNIGRAMS] += first
            layouts[k, TABLES::2] += first
            parts.append(model.memory)
            first += len(model.memory)
    memory = _joined(parts, np.uint32)
    memory.flags.writeable = False
    return memory, layouts
