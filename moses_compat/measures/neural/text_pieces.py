"""Entries of a table as text, for models that read words or pieces of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.lines.phrase_text import phrase_text
from moses_compat.measures.model_fit import FitCheck, TableSample
from moses_compat.measures.neural.score_windows import COLUMN_LINES, WindowedScores, column_that_holds
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.phrases import EntryBlock, Mask


@dataclass(frozen=True)
class TextPiece:
    """N entries without faults.

    Attributes:
        sources, targets: what N phrases each say.
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    sources: list[bytes]
    targets: list[bytes]
    hashes: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, block: EntryBlock) -> TextPiece:
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

    def part(self, first: int, last: int) -> TextPiece:
        """See `EntryPiece`."""
        return TextPiece(self.sources[first:last], self.targets[first:last], self.hashes[first:last])

    @classmethod
    def joined(cls, pieces: list[TextPiece]) -> TextPiece:
        """See `EntryPiece`."""
        sources = [text for piece in pieces for text in piece.sources]
        targets = [text for piece in pieces for text in piece.targets]
        return cls(sources, targets, np.concatenate([piece.hashes for piece in pieces]))


class TextScores(WindowedScores):
    """Scores of a model that reads entries as text.

    Args:
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(self, check: FitCheck | None, threads: int, folder: str | None) -> None:
        super().__init__(check, threads, folder)
        self._checked = False

    @property
    def held(self) -> str:
        """What messages call what stands in its column."""
        return self.column

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Tell whether the model fits the entries.

        Raises:
            DataError: it does not fit.
        """
        raise NotImplementedError

    def orient(self, table: str, sample: TableSample) -> None:
        """See `WindowedScores`."""
        if self._checked or self.check is None:
            return
        self._checked = True
        scores = range(max(sample.scores, 0))
        block = TableParser(None, None, sample.scores, scores, fingerprints=True)(0, sample.text)[0]
        piece = TextPiece.of(block)
        self.judge(self.check, table, piece)
        found = self.score(piece.part(0, COLUMN_LINES))
        there = block.columns[~block.faulty][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(found, there)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds {self.held}")

    def parse(self, raw: RawBlock) -> tuple[Mask, TextPiece]:
        """See `WindowedScores`."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.faulty, TextPiece.of(block)
