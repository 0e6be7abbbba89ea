"""Interface between a decoder and its language models, one or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Phrases


class SearchedModel(NamedTuple):
    """Language models under their weights, as a search walks them.

    Attributes:
        model: what kernels take, an `Automaton` or a `Combination`; a search has it for itself.
        weight: factor of its log10 scores, in addition to the natural logarithm of 10.
        begin_state: the state after `<s>`.
        end_word: the id of `</s>`.
    """

    model: Any
    weight: float
    begin_state: int
    end_word: int


class TargetModel(Protocol):
    """K language models of the target language; phrases and sentences are in the ids of `ids`."""

    def ids(self, words: Iterable[bytes]) -> Int32Array:
        """The ids of words, int32; 0 for those that no model knows."""

    def known(self, words: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Which model has which word, bool, shape (K, W)."""

    def isolated(self, phrases: Phrases) -> DoubleArray:
        """log10 of N phrases from the empty context, float64, shape (N, K)."""

    def walked(self, phrases: Phrases) -> tuple[Int32Array, DoubleArray]:
        """The states after each of W words and what follows, shape (W,) each; see `TranslationOptions`."""

    def sentences(self, offsets: Int64Array, chosen: Int32Array, phrases: Phrases) -> DoubleArray:
        """Natural logarithms of N sentences after `<s>`, float64, shape (N, K).

        `</s>` follows a sentence, but not a last phrase without words, as Moses has it, nor no phrase at all.

        Args:
            offsets: int64, shape (N + 1,): where in `chosen` the phrases of each begin.
            chosen: int32, shape (P,): numbers of phrases.
            phrases: of all of them, the words.
        """

    def searched(self, weights: DoubleArray, room: int) -> SearchedModel:
        """The models for one search under K weights, with room for `room` states where not all are known beforehand."""
