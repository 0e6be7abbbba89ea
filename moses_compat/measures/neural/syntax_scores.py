"""What a syntactic encoder says of the entries of a table: how alike the syntax of both sides is, by the cosine.

Each distinct phrase of a window is encoded once, without torch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.neural.opinion_queue import NeuralOpinions
from moses_compat.measures.neural.text_pieces import TextPiece, TextScores
from phrasetool.kernels.blas_threads import one_blas_thread
from phrasetool.phrases import FloatArray
from phrasetool.syntax.model import SyntaxModel, syntax_fit


class SyntaxScores(TextScores):
    """Cosines of a syntactic encoder; a similarity source whose one column is cosine - 1, the logarithm of what is
    written.

    Args:
        model: the encoder.
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(
        self, model: SyntaxModel, check: FitCheck | None = None, threads: int = 1, folder: str | None = None
    ) -> None:
        super().__init__(check, threads, folder)
        self.model = model

    @property
    def signature(self) -> str:
        """See `WindowedScores`."""
        return self.model.signature

    @property
    def column(self) -> str:
        """See `WindowedScores`."""
        return "exp(cosine - 1) of syntax"

    def one_thread(self) -> AbstractContextManager[object]:
        """See `WindowedScores`: it needs no torch."""
        return one_blas_thread()

    def similarities(self, logs: FloatArray) -> FloatArray:
        """See `WindowedScores`: the cosine."""
        return logs + np.float32(1)

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """See `TextScores`; syntax has no direction: swapped sides fit as well."""
        check.judge(table, syntax_fit(self.model, piece.sources, piece.targets), lambda: None)

    def score(self, window: TextPiece) -> FloatArray:
        """See `WindowedScores`."""
        with self.one_thread():
            return self.model.cosines(window.sources, window.targets) - np.float32(1)

    def opinions(self, window: TextPiece, scores: FloatArray) -> NeuralOpinions:
        """See `WindowedScores`."""
        silent = np.flatnonzero(np.isnan(scores)).tolist()
        if silent:
            sides = [self.model.too_long([side[i] for i in silent]) for side in (window.sources, window.targets)]
            self.too_long += int(np.logical_or(*sides).sum())
        return NeuralOpinions(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))
