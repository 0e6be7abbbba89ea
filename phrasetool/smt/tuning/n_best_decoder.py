"""What the decoder finds, in the form that tuning takes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Phrases
from phrasetool.smt.decoder.table import TranslationTable
from phrasetool.smt.decoder.translator import SearchOptions, Translation, Translator
from phrasetool.smt.tuning.candidates import NBest, Weights


class NBestDecoder:
    """A decoder of the development set, called with the weights that are tuned.

    Args:
        translator: the model; the weights that are not tuned stay as they are in it.
        sentences: S sentences of the development set, ids of the table's source words.
        options: of the search.
        n_best: candidates a sentence, no two with the same words.
        tuned: bool, shape (F,), which weights are tuned.
        threads: for decoding.
        tick: called after each sentence.
    """

    def __init__(
        self,
        translator: Translator,
        sentences: Phrases,
        options: SearchOptions,
        n_best: int,
        tuned: npt.NDArray[np.bool_],
        threads: int = 1,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._translator = translator
        self._sentences = sentences
        self._options = options
        self._n_best = n_best
        self._tuned = tuned
        self._threads = threads
        self._tick = tick

    def all_weights(self, weights: Weights) -> Weights:
        """The tuned weights and those that are not, float64, shape (F,)."""
        whole = self._translator.weights.copy()
        whole[self._tuned] = weights
        return whole

    def __call__(self, weights: Weights) -> NBest:
        """Candidates under these weights; their words are ids of the table's target words."""
        translator = self._translator.with_weights(self.all_weights(weights))
        counts, features, words = [], [], []
        for translation in translator.translate_all(
            self._sentences, self._options, self._n_best, threads=self._threads
        ):
            counts.append(len(translation))
            features.append(translation.features[:, self._tuned].astype(np.float32))
            words.append(_words(translator.table, translation))
            self._tick()
        offsets = np.concatenate([[0], *(phrases.lengths for phrases in words)]).cumsum()
        return NBest(
            np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            np.concatenate(features) if features else np.zeros((0, int(self._tuned.sum())), np.float32),
            Phrases(offsets.astype(np.int64), np.concatenate([np.zeros(0, np.int32), *(p.words for p in words)])),
        )


def _words(table: TranslationTable, translation: Translation) -> Phrases:
    """The target words of each derivation."""
    targets = table.targets.select(translation.steps.entries.astype(np.int64))
    return Phrases(targets.offsets[translation.steps.offsets], targets.words)
