"""n-best lists of the decoder in the form that tuning reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from phrasetool.smt.tuning.candidates import NBest, Weights


@dataclass(frozen=True)
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

    translator: Translator
    sentences: Phrases
    options: SearchOptions
    n_best: int
    tuned: npt.NDArray[np.bool_]
    threads: int = 1
    tick: Callable[[], None] = lambda: None

    def all_weights(self, weights: Weights) -> Weights:
        """The tuned weights and those that are not, float64, shape (F,)."""
        whole = self.translator.weights.copy()
        whole[self.tuned] = weights
        return whole

    def __call__(self, weights: Weights, runner: Runner = run) -> NBest:
        """Candidates under these weights; their words are ids of the table's target words.

        Args:
            weights: those that are tuned.
            runner: has sentences translated.
        """
        translator = self.translator.with_weights(self.all_weights(weights))
        counts, features, words = [], [], []
        for translation in translator.translate_all(
            self.sentences, self.options, self.n_best, threads=self.threads, runner=runner
        ):
            counts.append(len(translation))
            features.append(translation.features[:, self.tuned].astype(np.float32))
            targets = translator.table.targets.select(translation.steps.entries)
            words.append(Phrases(targets.offsets[translation.steps.offsets], targets.words))
            self.tick()
        return NBest(
            np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            np.concatenate([np.zeros((0, int(self.tuned.sum())), np.float32), *features]),
            Phrases.concatenate(words),
        )
