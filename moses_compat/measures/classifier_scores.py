"""What a classifier of sentence pairs says of the entries of a table: how probable it is that they are parallel.

Each distinct phrase of a window is encoded once.  On the table of the reference run, whose sources are sorted, that is
9 % more than each distinct phrase of the table once, and no vector has to be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.windowed_scores import NeuralOpinions, TextPiece, TextScores
from phrasetool.nn.device import one_torch_thread
from phrasetool.pair_classifier.bitext_scores import ClassifierScorer
from phrasetool.pair_classifier.model import PairClassifierModel, fit_of_pairs
from phrasetool.phrases import FloatArray


class ParallelScores(TextScores):
    """Probabilities of a classifier; a similarity source whose one column is their logarithm.

    Args:
        model: the classifier.
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(
        self, model: PairClassifierModel, check: FitCheck | None = None, threads: int = 1, folder: str | None = None
    ) -> None:
        super().__init__(check, threads, folder)
        self.model = model
        self._judge = ClassifierScorer(model)

    @property
    def signature(self) -> str:
        """See `WindowedScores`."""
        return self.model.signature

    @property
    def column(self) -> str:
        """See `WindowedScores`."""
        return "p(parallel)"

    @property
    def held(self) -> str:
        """See `TextScores`."""
        return "the probabilities"

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """See `TextScores`."""

        def fit(swapped: bool) -> Any:
            return fit_of_pairs(self.model, piece.sources, piece.targets, swapped, sentences=False)

        check.judge(table, fit(False), lambda: fit(True))

    def score(self, window: TextPiece) -> FloatArray:
        """See `WindowedScores`."""
        with one_torch_thread():
            found = self._judge(window.sources, window.targets).scores
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found), np.float32)

    def opinions(self, window: TextPiece, scores: FloatArray) -> NeuralOpinions:
        """See `WindowedScores`."""
        longest = self.model.architecture.longest
        lengths = (max(a.count(b" "), b.count(b" ")) for a, b in zip(window.sources, window.targets, strict=True))
        self.too_long += sum(length >= longest for length in lengths)
        return NeuralOpinions(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))
