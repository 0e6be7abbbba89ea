"""What a classifier of sentence pairs says of the entries of a table: how probable it is that they are parallel.

Each distinct phrase of a window is encoded once.  On the table of the reference run, whose sources are sorted, that is
9 % more than each distinct phrase of the table once, and no vector has to be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moses_compat.measures.model_fit import FitCheck, TableSample
from moses_compat.measures.neural.opinion_queue import NeuralOpinions
from moses_compat.measures.neural.score_windows import COLUMN_LINES, WindowedScores, column_that_holds
from moses_compat.measures.neural.text_pieces import TextPiece
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.bitext.pair_judges import ClassifierJudge
from phrasetool.models.parallel import ParallelModel
from phrasetool.models.parallel_fit import fit_of_pairs
from phrasetool.phrases import FloatArray, Mask
from phrasetool.torch_threads import one_torch_thread


class ParallelScores(WindowedScores):
    """Probabilities of a classifier; a similarity source whose one column is their logarithm.

    Args:
        model: the classifier.
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(
        self, model: ParallelModel, check: FitCheck | None = None, threads: int = 1, folder: str | None = None
    ) -> None:
        super().__init__(check, threads, folder)
        self.model = model
        self._judge = ClassifierJudge(model)
        self._checked = False

    @property
    def signature(self) -> str:
        """See `WindowedScores`."""
        return self.model.signature

    @property
    def column(self) -> str:
        """See `WindowedScores`."""
        return "p(parallel)"

    def orient(self, table: str, sample: TableSample) -> None:
        """See `WindowedScores`."""
        if self._checked or self.check is None:
            return
        self._checked = True
        scores = range(max(sample.scores, 0))
        block = TableParser(None, None, sample.scores, scores, fingerprints=True)(0, sample.text)[0]
        piece = TextPiece.of(block)

        def fit(swapped: bool) -> Any:
            return fit_of_pairs(self.model, piece.sources, piece.targets, swapped, sentences=False)

        self.check.judge(table, fit(False), lambda: fit(True))
        found = self.score(piece.part(0, COLUMN_LINES))
        there = block.columns[~block.faulty][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(found, there)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds the probabilities")

    def parse(self, raw: RawBlock) -> tuple[Mask, TextPiece]:
        """See `WindowedScores`."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.faulty, TextPiece.of(block)

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
