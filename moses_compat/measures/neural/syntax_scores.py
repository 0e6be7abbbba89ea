"""What a syntactic encoder says of the entries of a table: how alike the syntax of both sides is, by the cosine.

Each distinct phrase of a window is encoded once, without torch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from moses_compat.measures.model_fit import FitCheck, TableSample
from moses_compat.measures.neural.opinion_queue import NeuralOpinions
from moses_compat.measures.neural.score_windows import COLUMN_LINES, WindowedScores, column_that_holds
from moses_compat.measures.neural.text_pieces import TextPiece
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.kernels.blas_threads import one_blas_thread
from phrasetool.models.syntax import SyntaxModel
from phrasetool.models.syntax_fit import fit_of_syntax
from phrasetool.phrases import FloatArray, Mask


class SyntaxScores(WindowedScores):
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
        self._checked = False

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

    def orient(self, table: str, sample: TableSample) -> None:
        """See `WindowedScores`."""
        if self._checked or self.check is None:
            return
        self._checked = True
        scores = range(max(sample.scores, 0))
        block = TableParser(None, None, sample.scores, scores, fingerprints=True)(0, sample.text)[0]
        piece = TextPiece.of(block)
        self.judge(table, piece)
        found = self.score(piece.part(0, COLUMN_LINES))
        there = block.columns[~block.faulty][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(found, there)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds {self.column}")

    def judge(self, table: str, piece: TextPiece) -> None:
        """Tell whether the encoder fits the entries.

        Raises:
            DataError: it does not fit.
        """
        if self.check is not None:
            # Syntax has no direction: swapped sides fit as well.
            self.check.judge(table, fit_of_syntax(self.model, piece.sources, piece.targets), lambda: None)

    def parse(self, raw: RawBlock) -> tuple[Mask, TextPiece]:
        """See `WindowedScores`."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.faulty, TextPiece.of(block)

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
