"""Back-off language models: tables of n-grams, one per order, and the interface between a decoder and its models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, FloatArray, Int32Array, Int64Array, Phrases

UNKNOWN_WORD = b"<unk>"
BEGIN_WORD = b"<s>"
END_WORD = b"</s>"
# Value that kenlm gives the unknown word of a model that has none.
UNKNOWN_LOG_PROBABILITY = -100.0
# Models contain decimal logarithms; a decoder's features are natural logarithms.
LN10 = 2.302585092994046


@dataclass(frozen=True)
class NgramTable:
    """All n-grams of one order n, N of them.

    Attributes:
        words: int32, shape (N, n), word ids, the predicted word last.
        log_probabilities: float32, shape (N,), log10 of the last word's probability after the others.
        backoffs: float32, shape (N,), log10 of the weight given to shorter contexts when no longer n-gram begins with
            this one; zeros in the table of the highest order.
    """

    words: Int32Array
    log_probabilities: FloatArray
    backoffs: FloatArray

    def __len__(self) -> int:
        return len(self.words)

    def part(self, first: int, last: int) -> NgramTable:
        """Return rows first..last - 1."""
        rows = slice(first, last)
        return NgramTable(self.words[rows], self.log_probabilities[rows], self.backoffs[rows])


@dataclass(frozen=True)
class BackoffModel:
    """A back-off language model (Katz 1987, the form of an ARPA file).

    p(w | h) is that of the n-gram hw if it exists, else the back-off of h (1 if h is not an n-gram) times
    p(w | h without its first word).

    Attributes:
        words: V distinct words; `words[0]` is `<unk>`.
        tables: one per order, from 1.  The table of order 1 holds each word once, in id order.
    """

    words: list[bytes]
    tables: list[NgramTable]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.tables)


class SearchedModel(NamedTuple):
    """Language models with their weights, as a search uses them.

    Attributes:
        model: argument of kernels: an `Automaton`, or a `Combination` that belongs to one search.
        weight: factor of its log10 scores, in addition to the natural logarithm of 10.
        begin_state: the state after `<s>`.
        end_word: the id of `</s>`.
    """

    model: Any
    weight: float
    begin_state: int
    end_word: int


class TargetModel(Protocol):
    """K language models of the target language; phrases and sentences consist of the ids from `ids`."""

    def ids(self, words: Iterable[bytes]) -> Int32Array:
        """Return the ids of words, int32; 0 for words that no model has."""

    def known(self, words: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return which model has which word, bool, shape (K, W)."""

    def isolated(self, phrases: Phrases) -> DoubleArray:
        """Return log10 of N phrases from the empty context, float64, shape (N, K)."""

    def walked(self, phrases: Phrases) -> tuple[Int32Array, DoubleArray]:
        """Return the state after each word and log10 of the words that follow, shape (W,); see `TranslationOptions`."""

    def sentences(self, offsets: Int64Array, chosen: Int32Array, phrases: Phrases) -> DoubleArray:
        """Return natural logarithms of N sentences after `<s>`, float64, shape (N, K).

        `</s>` is scored after a sentence unless its last phrase has no words, as in Moses, or it has no phrases.

        Args:
            offsets: int64, shape (N + 1,): offsets of the sentences in `chosen`.
            chosen: int32, shape (P,): numbers of phrases.
            phrases: the words of all phrases.
        """

    def searched(self, weights: DoubleArray, room: int) -> SearchedModel:
        """Return the models for one search with K weights, with room for `room` states created on demand."""
