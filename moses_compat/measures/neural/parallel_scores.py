"""What a classifier of sentence pairs says of the entries of a table: how probable it is that they are parallel.

Each distinct phrase of a window is encoded once.  On the table of the reference run, whose sources are sorted, that is
9 % more than each distinct phrase of the table once, and no vector has to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.lines.phrase_text import phrase_text
from moses_compat.measures.model_fit import FitCheck, TableSample
from moses_compat.measures.neural.opinion_queue import NeuralOpinions
from moses_compat.measures.neural.score_windows import COLUMN_LINES, WindowedScores, column_that_holds
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.bitext.pair_judges import ClassifierJudge
from phrasetool.models.parallel import ParallelModel
from phrasetool.models.parallel_fit import fit_of_pairs
from phrasetool.phrases import EntryBlock, FloatArray, Mask
from phrasetool.torch_threads import one_torch_thread


@dataclass(frozen=True)
class _TextPiece:
    """N entries without faults.

    Attributes:
        sources, targets: what N phrases each say.
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    sources: list[bytes]
    targets: list[bytes]
    hashes: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, block: EntryBlock) -> _TextPiece:
        """The good entries of a block with fingerprints."""
        good = np.flatnonzero(~block.faulty)
        data = block.text.tobytes()
        starts, middles, ends = (
            places[good].tolist() for places in (block.line_offsets[:-1], block.source_ends, block.target_ends)
        )
        said: dict[bytes, bytes] = {}

        def text(phrase: bytes) -> bytes:
            # Entries of a source stand together.
            if phrase not in said:
                said[phrase] = phrase_text(phrase).encode()
            return said[phrase]

        sources = [text(data[start:end]) for start, end in zip(starts, middles, strict=True)]
        targets = [text(data[start + 3 : end]) for start, end in zip(middles, ends, strict=True)]
        return cls(sources, targets, block.fingerprints[good])

    def part(self, first: int, last: int) -> _TextPiece:
        return _TextPiece(self.sources[first:last], self.targets[first:last], self.hashes[first:last])

    @classmethod
    def joined(cls, pieces: list[_TextPiece]) -> _TextPiece:
        sources = [text for piece in pieces for text in piece.sources]
        targets = [text for piece in pieces for text in piece.targets]
        return cls(sources, targets, np.concatenate([piece.hashes for piece in pieces]))


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
        piece = _TextPiece.of(block)

        def fit(swapped: bool) -> Any:
            return fit_of_pairs(self.model, piece.sources, piece.targets, swapped, sentences=False)

        self.check.judge(table, fit(False), lambda: fit(True))
        found = self.score(piece.part(0, COLUMN_LINES))
        there = block.columns[~block.faulty][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(found, there)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds the probabilities")

    def parse(self, raw: RawBlock) -> tuple[Mask, _TextPiece]:
        """See `WindowedScores`."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.faulty, _TextPiece.of(block)

    def score(self, window: _TextPiece) -> FloatArray:
        """See `WindowedScores`."""
        with one_torch_thread():
            found = self._judge(window.sources, window.targets).scores
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found), np.float32)

    def opinions(self, window: _TextPiece, scores: FloatArray) -> NeuralOpinions:
        """See `WindowedScores`."""
        longest = self.model.architecture.longest
        lengths = (max(a.count(b" "), b.count(b" ")) for a, b in zip(window.sources, window.targets, strict=True))
        self.too_long += sum(length >= longest for length in lengths)
        return NeuralOpinions(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))
