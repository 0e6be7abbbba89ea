"""Scores of entries by models that score pairs together: windows of the table, worked on ahead of its blocks.

The last bits of a score depend on which pairs are scored together.  So the good entries of the table, however it is cut
into blocks, are numbered, and each run of `WINDOW` of them is scored by itself.  Windows are worked on by several
threads, ahead of the blocks that hold them; memory holds the windows in progress.
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
    """What a translator says of N entries.

    Attributes:
        logs: float32, shape (N,), its scores; NaN where it says nothing.
        words: int64, shape (N,), what it predicted for each: the words of its target, and the end.
        opinion: bool, shape (N,), False where a side has no known word, or too many words (or the entry is faulty).
    """

    logs: FloatArray
    words: Int64Array
    opinion: Mask


class ScoringQueue:
    """Opinions on their way from windows to blocks.

    Attributes:
        size: entries in it.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: deque[ScoredEntries] = deque()

    def put(self, part: ScoredEntries) -> None:
        """Add entries behind the last."""
        self._parts.append(part)
        self.size += len(part.logs)

    def take(self, count: int) -> ScoredEntries:
        """Take so many entries, which are there, from the front."""
        self.size -= count
        taken = [ScoredEntries(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.bool_))]
        while count:
            part = self._parts.popleft()
            taken.append(_slice(part, 0, count))
            if len(part.logs) > count:
                self._parts.appendleft(_slice(part, count, len(part.logs)))
            count -= len(taken[-1].logs)
        return ScoredEntries(
            np.concatenate([part.logs for part in taken]),
            np.concatenate([part.words for part in taken]),
            np.concatenate([part.opinion for part in taken]),
        )

    def take_block(self, faulty: Mask) -> ScoredEntries:
        """Take the good entries of a block from the front; what is said of all its N, where faulty is of shape (N,)."""
        part = self.take(len(faulty) - int(np.count_nonzero(faulty)))
        logs, words, opinion = (
            np.full(len(faulty), np.nan, np.float32),
            np.ones(len(faulty), np.int64),
            np.zeros_like(faulty),
        )
        logs[~faulty], words[~faulty], opinion[~faulty] = part.logs, part.words, part.opinion
        return ScoredEntries(logs, words, opinion)


def _slice(part: ScoredEntries, first: int, last: int) -> ScoredEntries:
    return ScoredEntries(part.logs[first:last], part.words[first:last], part.opinion[first:last])


WINDOW = 1 << 14
# Lines that are enough to know a column by, how far it may be from what is computed, and the share that must agree.
COLUMN_LINES = 400
_NEAR, _AGREEING = 1e-3, 0.98


class EntryPiece(Protocol):
    """N entries without faults, as a network reads them.

    Attributes:
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    @property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """See the class."""

    def part(self, first: int, last: int) -> Self:
        """The entries first..last - 1."""

    @classmethod
    def joined(cls, pieces: list[Self]) -> Self:
        """All entries, one piece after another; there is one at least."""


class WindowedScores:
    """A similarity source whose one column is a logarithm, scored window by window.

    Args:
        check: whether the model fits the table; not asked if None.
        threads: windows that are worked on at a time.
        folder: for what is finished, so that interrupted work can go on; none if None.

    Attributes:
        too_long: entries of the last table with more words than are taken.
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
        """What its column holds."""
        raise NotImplementedError

    @property
    def backward(self) -> bool:
        """Whether it goes from the table's targets to its sources."""
        return False

    @property
    def folder(self) -> str:
        """Of the model, as messages call it."""
        return self.check.folder if self.check else self.signature

    def reader(self, table: str) -> WindowReader:
        """See `SimilaritySource`."""
        return WindowReader(table, self)

    def one_thread(self) -> AbstractContextManager[object]:
        """Entered where windows are worked on, in each thread: its products share no threads."""
        return one_torch_thread()

    def similarities(self, logs: FloatArray) -> FloatArray:
        """What a rule for similarities is given for scores per predicted word, float32, shape (N,)."""
        return np.exp(np.minimum(logs, 0))

    def orient(self, table: str, sample: TableSample) -> None:
        """Look at some entries before the work begins.

        Raises:
            DataError: the model does not fit, or its column is there.
        """
        raise NotImplementedError

    def parse(self, raw: RawBlock) -> tuple[Mask, Any]:
        """Which lines of a block are faulty, and its good entries as an `EntryPiece`."""
        raise NotImplementedError

    def score(self, window: Any) -> FloatArray:
        """Of N entries, float32, shape (N,): logarithms, NaN where nothing is said."""
        raise NotImplementedError

    def scored_entries(self, window: Any, scores: FloatArray) -> ScoredEntries:
        """What is said of N entries."""
        raise NotImplementedError

    def parts(self) -> ScoreParts | None:
        """Where finished windows are kept."""
        if self._folder is None:
            return None
        from moses_compat.measures.saved_scores import ScoreParts

        return ScoreParts(self._folder, f"{self.signature}|{self.column}|window:{WINDOW}")


class WindowReader(SimilarityReader):
    """A source at work on one table."""

    def __init__(self, table: str, source: WindowedScores) -> None:
        self._table, self._source = table, source
        self._ready: deque[ScoredEntries] = deque()

    def __getstate__(self) -> dict[str, Any]:
        # Scores are there when a block goes to another process.
        return {"_table": self._table}

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """See `SimilarityReader`."""
        sample, taken = TableSample.take(raws)
        if sample:
            self._source.orient(self._table, sample)
        yield from self.scored(chain(drain(taken), raws))

    def scored(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """The blocks, each when its entries are scored."""
        source = self._source
        source.too_long = 0
        parts = source.parts()
        held: deque[tuple[RawBlock, Mask]] = deque()
        queue = ScoringQueue()

        def parse(raw: RawBlock) -> tuple[RawBlock, Mask, EntryPiece]:
            return raw, *source.parse(raw)

        def pieces() -> Iterator[EntryPiece]:
            for raw, faulty, piece in run(raws, parse, source.threads):
                held.append((raw, faulty))
                yield piece

        def score(item: tuple[int, EntryPiece]) -> tuple[int, EntryPiece, FloatArray, bool]:
            number, window = item
            logs = parts.read(number, window.hashes) if parts else None
            new = logs is None
            if logs is None:
                logs = source.score(window)
            return number, window, logs, new

        # Windows are what is done side by side.
        with source.one_thread():
            for number, window, scores, new in run(enumerate(_windows(pieces())), score, source.threads):
                # In order, so that nothing is added to the parts of another table or model before they are refused.
                if parts and new:
                    parts.write(number, window.hashes, scores)
                queue.put(source.scored_entries(window, scores))
                while held and queue.size >= int(np.count_nonzero(~held[0][1])):
                    raw, faulty = held.popleft()
                    self._ready.append(queue.take_block(faulty))
                    yield raw
        # Of faulty lines alone.
        while held:
            raw, faulty = held.popleft()
            self._ready.append(queue.take_block(faulty))
            yield raw

    def take(self, lines: int) -> ScoredEntries:
        """See `SimilarityReader`."""
        return self._ready.popleft()

    def score(self, block: EntryBlock, columns: DoubleArray, taken: ScoredEntries) -> Scores:
        """See `SimilarityReader`; one column, of logarithms."""
        return Scores(taken.logs[:, None], taken.opinion, logarithms=True)


def _windows(pieces: Iterator[EntryPiece]) -> Iterator[EntryPiece]:
    """The same entries, `WINDOW` at a time."""
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
    """The score column, from 0, that holds what would be written of N entries; None if there is none.

    Args:
        logs: float32, shape (N,).
        there: float64, shape (N, C), the columns of the entries.
    """
    written = scale_logarithms(logs)
    if not len(written) or np.ptp(written) <= 0:
        return None
    agreeing = (np.abs(there - written[:, None]) <= _NEAR * written[:, None]).mean(0)
    return int(np.argmax(agreeing)) if len(agreeing) and agreeing.max() >= _AGREEING else None


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
        texts: dict[bytes, bytes] = {}

        def text(phrase: bytes) -> bytes:
            # Entries of a source stand together.
            if phrase not in texts:
                texts[phrase] = phrase_text(phrase).encode()
            return texts[phrase]

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
        """Name of the content of its column in messages."""
        return self.column

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """Check whether the model fits the entries.

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
        logs = self.score(piece.part(0, COLUMN_LINES))
        there = block.columns[~block.faulty][:COLUMN_LINES]
        if self.check.appended and (column := column_that_holds(logs, there)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds {self.held}")

    def parse(self, raw: RawBlock) -> tuple[Mask, TextPiece]:
        """See `WindowedScores`."""
        parser = TableParser(None, None, raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.faulty, TextPiece.of(block)

    def scored_entries(self, window: TextPiece, scores: FloatArray) -> ScoredEntries:
        """See `WindowedScores`; a pair has one score, whatever its words."""
        return ScoredEntries(scores, np.ones(len(scores), np.int64), ~np.isnan(scores))


class PairScores(TextScores["SavedModel"]):
    """Scores of a model of any family that scores phrase pairs, see `SavedModel.score_pairs`; a similarity source whose
    one column is their logarithm.
    """

    @property
    def column(self) -> str:
        """See `WindowedScores`."""
        return self.model.column

    def judge(self, check: FitCheck, table: str, piece: TextPiece) -> None:
        """See `TextScores`: such a model has no words to compare with those of the table."""

    def score(self, window: TextPiece) -> FloatArray:
        """See `WindowedScores`."""
        with self.one_thread(), np.errstate(divide="ignore"):
            return np.asarray(np.log(self.model.score_pairs(window.sources, window.targets)), np.float32)
