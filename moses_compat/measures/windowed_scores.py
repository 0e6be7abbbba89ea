"""Scores of entries by models that score pairs in batches: windows of the table, scored ahead of its blocks.

The last bits of a score depend on which pairs are scored together.  Therefore, the valid entries of a table are
numbered independently of its blocks, and every `WINDOW` consecutive entries form a batch.  Several threads score
windows, ahead of the blocks that contain them; memory holds only the windows in progress.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.lines.fields import phrase_text
from moses_compat.lines.insert_scores import scale_logarithms
from moses_compat.measures.model_fit import FitCheck, TableSample, drain
from moses_compat.measures.similarities import SimilarityReader
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import DoubleArray, EntryBlock, FloatArray, Int64Array, Mask
from phrasetool.pipeline import run

if TYPE_CHECKING:
    from moses_compat.measures.saved_scores import ScoreParts
    from phrasetool.models.saved_model import SavedModel

TextModel = TypeVar("TextModel", bound="SavedModel")


@dataclass(frozen=True)
class ScoredEntries:
    """Scores of N entries.

    Attributes:
        logs: float32, shape (N,), logarithms; NaN for an entry without a score.
        words: int64, shape (N,), number of predictions for each: the words of its target, and the end.
        scored: bool, shape (N,), False if a side has no known word, or too many words (or the entry is malformed).
    """

    logs: FloatArray
    words: Int64Array
    scored: Mask


class ScoringQueue:
    """Queue that regroups scores from windows to blocks.

    Attributes:
        size: number of entries in the queue.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: deque[ScoredEntries] = deque()

    def put(self, part: ScoredEntries) -> None:
        """Append entries."""
        self._parts.append(part)
        self.size += len(part.logs)

    def take(self, count: int) -> ScoredEntries:
        """Remove `count` entries, which must be available, from the front."""
        self.size -= count
        parts = [ScoredEntries(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.bool_))]
        while count:
            part = self._parts.popleft()
            parts.append(_slice(part, 0, count))
            if len(part.logs) > count:
                self._parts.appendleft(_slice(part, count, len(part.logs)))
            count -= len(parts[-1].logs)
        return ScoredEntries(
            np.concatenate([part.logs for part in parts]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.scored for part in parts]),
        )

    def take_block(self, malformed: Mask) -> ScoredEntries:
        """Remove the valid entries of a block from the front, and return the scores of all its N lines."""
        part = self.take(len(malformed) - int(np.count_nonzero(malformed)))
        logs, words, scored = (
            np.full(len(malformed), np.nan, np.float32),
            np.ones(len(malformed), np.int64),
            np.zeros_like(malformed),
        )
        logs[~malformed], words[~malformed], scored[~malformed] = part.logs, part.words, part.scored
        return ScoredEntries(logs, words, scored)


def _slice(part: ScoredEntries, first: int, last: int) -> ScoredEntries:
    return ScoredEntries(part.logs[first:last], part.words[first:last], part.scored[first:last])


WINDOW = 1 << 14
# Number of lines that suffices to recognise a column, the largest relative difference, and the share that must agree.
COLUMN_LINES = 400
_NEAR, _AGREEING = 1e-3, 0.98


class EntryPiece(Protocol):
    """N valid entries in the form that a network reads.

    Attributes:
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    @property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """Fingerprints of the pairs, uint32, shape (N,)."""

    def part(self, first: int, last: int) -> Self:
        """Return the entries first..last - 1."""

    @classmethod
    def joined(cls, pieces: list[Self]) -> Self:
        """Concatenate the entries of at least one piece."""


class WindowedScores:
    """A similarity source with one column, a logarithm, scored window by window.

    Args:
        check: the check that the model matches the table; None for no check.
        threads: number of windows that are processed in parallel.
        folder: folder for finished scores, so that interrupted work can be resumed; None to store nothing.

    Attributes:
        too_long: number of entries of the last table with more words than the model reads.
    """

    def __init__(self, check: FitCheck | None, threads: int, folder: str | None) -> None:
        self.check, self.threads = check, threads
        self.too_long = 0
        self._folder = folder

    @property
    def signature(self) -> str:
        """The model's part of the signature line."""
        raise NotImplementedError

    @property
    def column(self) -> str:
        """Name of the score column."""
        raise NotImplementedError

    @property
    def backward(self) -> bool:
        """Whether the model scores sources given targets."""
        return False

    @property
    def folder(self) -> str:
        """Folder of the model, for messages."""
        return self.check.folder if self.check else self.signature

    def reader(self, table: str) -> WindowReader:
        """Return a reader for one pass through a table."""
        return WindowReader(table, self)

    def one_thread(self) -> AbstractContextManager[object]:
        """Return a context in which each worker thread computes its matrix products alone."""
        return one_torch_thread()

    def similarities(self, logs: FloatArray) -> FloatArray:
        """Convert scores per predicted word to similarities, float32, shape (N,)."""
        return np.exp(np.minimum(logs, 0))

    def orient(self, table: str, sample: TableSample) -> None:
        """Check the model on some entries before the work begins.

        Raises:
            DataError: the model does not match, or its column already exists.
        """
        raise NotImplementedError

    def parse(self, raw: RawBlock) -> tuple[Mask, Any]:
        """Return the malformed lines of a block, and its valid entries as an `EntryPiece`."""
        raise NotImplementedError

    def score(self, window: Any) -> FloatArray:
        """Return the logarithms for N entries, float32, shape (N,); NaN for an entry without a score."""
        raise NotImplementedError

    def scored_entries(self, window: Any, scores: FloatArray) -> ScoredEntries:
        """Return the scores of N entries."""
        raise NotImplementedError

    def parts(self) -> ScoreParts | None:
        """Return the store of finished windows, if any."""
        if self._folder is None:
            return None
        from moses_compat.measures.saved_scores import ScoreParts

        return ScoreParts(self._folder, f"{self.signature}|{self.column}|window:{WINDOW}")


class WindowReader(SimilarityReader):
    """Reader that computes the scores of one table, window by window."""

    def __init__(self, table: str, source: WindowedScores) -> None:
        self._table, self._source = table, source
        self._ready: deque[ScoredEntries] = deque()

    def __getstate__(self) -> dict[str, Any]:
        # A block is sent to another process only after it has been scored.
        return {"_table": self._table}

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Check the model on a sample, and yield the blocks when their entries are scored."""
        sample, taken = TableSample.take(raws)
        if sample:
            self._source.orient(self._table, sample)
        yield from self.scored(chain(drain(taken), raws))

    def scored(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Yield each block when its entries are scored."""
        source = self._source
        source.too_long = 0
        parts = source.parts()
        held: deque[tuple[RawBlock, Mask]] = deque()
        queue = ScoringQueue()

        def parse(raw: RawBlock) -> tuple[RawBlock, Mask, EntryPiece]:
            return raw, *source.parse(raw)

        def pieces() -> Iterator[EntryPiece]:
            for raw, malformed, piece in run(raws, parse, source.threads):
                held.append((raw, malformed))
                yield piece

        def score(item: tuple[int, EntryPiece]) -> tuple[int, EntryPiece, FloatArray, bool]:
            number, window = item
            logs = parts.read(number, window.hashes) if parts else None
            new = logs is None
            if logs is None:
                logs = source.score(window)
            return number, window, logs, new

        # Windows are scored in parallel.
        with source.one_thread():
            for number, window, scores, new in run(enumerate(_windows(pieces())), score, source.threads):
                # Parts are written in order, so that parts of another table or model are refused before any is added.
                if parts and new:
                    parts.write(number, window.hashes, scores)
                queue.put(source.scored_entries(window, scores))
                while held and queue.size >= int(np.count_nonzero(~held[0][1])):
                    raw, malformed = held.popleft()
                    self._ready.append(queue.take_block(malformed))
                    yield raw
        # The remaining blocks have only malformed lines.
        while held:
            raw, malformed = held.popleft()
            self._ready.append(queue.take_block(malformed))
            yield raw

    def take(self, lines: int) -> ScoredEntries:
        """Return the scores of the next block."""
        return self._ready.popleft()

    def score(self, block: EntryBlock, columns: DoubleArray, taken: ScoredEntries) -> Scores:
        """Return the scores of a block; one column of logarithms."""
        return Scores(taken.logs[:, None], taken.scored, logarithms=True)


def _windows(pieces: Iterator[EntryPiece]) -> Iterator[EntryPiece]:
    """Yield the entries, `WINDOW` at a time."""
    held: list[EntryPiece] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece.hashes)
        if size >= WINDOW:
            joined = type(held[0]).joined(held)
            whole = size - size % WINDOW
            for first in range(0, whole, WINDOW):
                yield joined.part(first, first + WINDOW)
            held, size = [joined.part(whole, size)], size - whole
    if size:
        yield type(held[0]).joined(held)


def column_that_holds(logs: FloatArray, there: DoubleArray) -> int | None:
    """Return the score column, from 0, that already holds these scores of N entries; None if absent.

    Args:
        logs: float32, shape (N,).
        there: float64, shape (N, C), the existing score columns of the entries.
    """
    written = scale_logarithms(logs)
    if not len(written) or np.ptp(written) <= 0:
        return None
    agreeing = (np.abs(there - written[:, None]) <= _NEAR * written[:, None]).mean(0)
    return int(np.argmax(agreeing)) if len(agreeing) and agreeing.max() >= _AGREEING else None


@dataclass(frozen=True)
class TextPiece:
    """N valid entries as text.

    Attributes:
        sources, targets: texts of N phrases each.
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    sources: list[bytes]
    targets: list[bytes]
    hashes: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, block: EntryBlock) -> TextPiece:
        """Return the valid entries of a block with fingerprints."""
        good = np.flatnonzero(~block.malformed)
        data = block.text.tobytes()
        starts, middles, ends = (
            positions[good].tolist() for positions in (block.line_offsets[:-1], block.source_ends, block.target_ends)
        )
        texts: dict[bytes, bytes] = {}

        def text(phrase: bytes) -> bytes:
            # Entries of a source are adjacent.
            if phrase not in texts:
                texts[phrase] = phrase_text(phrase).encode()
            return texts[phrase]

        sources = [text(data[start:end]) for start, end in zip(starts, middles, strict=True)]
        targets = [text(data[start + 3 : end]) for start, end in zip(middles, ends, strict=True)]
        return cls(sources, targets, block.fingerprints[good])

    def part(self, first: int, last: int) -> TextPiece:
        """Return the entries first..last - 1."""
        return TextPiece(self.sources[first:last], self.targets[first:last], self.hashes[first:last])

    @classmethod
    def joined(cls, pieces: list[TextPiece]) -> TextPiece:
        """Concatenate the entries of at least one piece."""
        sources = [text for piece in pieces for text in piece.sources]
        targets = [text for piece in pieces for text in piece.targets]
        return cls(sources, targets, np.concatenate([piece.hashes for piece in pieces]))


class TextScores(WindowedScores, Generic[TextModel]):
    """Scores of a model that reads entries as text.

    Args:
        model: the model.
        check, threads, folder: see `WindowedScores`.
    """

    def __init__(
        self, model: TextModel, check: FitCheck | None = None, threads: int = 1, folder: str | None = None
    ) -> None:
        super().__init__(check, threads, folder)
        self.model = model
        self._checked = False

    @property
    def signature(self) -> str:
        """Signature of the model."""
        return self.model.signature

    @property
    def held(self) -> str:
        """Name of the column's content in messages."""
        return self.column

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Check whether the model matches the entries.

        Raises:
            DataError: the model does not match.
        """
        raise NotImplementedError

    def orient(self, table: str, sample: TableSample) -> None:
        """Check the model on some entries before the work begins."""
        if self._checked or self.check is None:
            return
        self._checked = True
        scores = range(max(sample.scores, 0))
        block = TableParser(None, None, sample.scores, scores, fingerprints=True)(0, sample.text)[0]
        piece = TextPiece.of(block)
        self.judge(self.check, table, piece)
        logs = self.score(piece.part(0, COLUMN_LINES))
        columns = block.columns[~block.malformed][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(logs, columns)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds {self.held}")

    def parse(self, raw: RawBlock) -> tuple[Mask, TextPiece]:
        """Return the malformed lines of a block, and its valid entries as text."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.malformed, TextPiece.of(block)

    def scored_entries(self, window: TextPiece, scores: FloatArray) -> ScoredEntries:
        """Return the scores of a window; a pair has one score, regardless of its words."""
        return ScoredEntries(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))


class PairScores(TextScores["SavedModel"]):
    """Scores of a model of any family that scores phrase pairs, see `SavedModel.score_pairs`.

    This is a similarity source with one column, the logarithm of the score.
    """

    @property
    def column(self) -> str:
        """Name of the score column."""
        return self.model.column

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Do nothing, because such a model has no vocabulary that could be compared with the table."""

    def score(self, window: TextPiece) -> FloatArray:
        """Return the logarithms of the scores of a window."""
        with self.one_thread(), np.errstate(divide="ignore"):
            return np.asarray(np.log(self.model.score_pairs(window.sources, window.targets)), np.float32)
