"""What translators say of the entries of a table: log p of one side given the other (Cho et al. 2014).

The last bits of a score depend on which pairs are scored together (see `pair_batches`).  So the good entries of the
table, whatever blocks they come in, are numbered, and each run of `WINDOW` of them is scored by itself.  Windows are
worked on by several threads, ahead of the blocks that hold them; memory holds the windows under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from moses_compat.lines.insert_scores import scale_logarithms
from moses_compat.measures.model_fit import FitCheck, TableSample, fit_of_sample
from moses_compat.measures.neural.opinion_queue import NeuralOpinions, OpinionQueue
from moses_compat.measures.similarities import SimilarityReader
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.errors import ModelError
from phrasetool.models.neural import NeuralModel
from phrasetool.neural.architecture import READINGS
from phrasetool.phrases import DoubleArray, EntryBlock, FloatArray, Int64Array, Mask, Phrases
from phrasetool.pipeline import run
from phrasetool.scoring.scorer import Scores, has_known_word
from phrasetool.torch_threads import one_torch_thread
from phrasetool.vocabulary import Vocabulary

if TYPE_CHECKING:
    from moses_compat.measures.neural.score_parts import ScoreParts

WINDOW = 1 << 14
# Of a word of a pair that cannot be scored, where pairs are compared.
_WORST = -50.0
# Lines that are enough to know a column by, how far it may be from what is computed, and the share that must agree.
_LINES, _NEAR, _AGREEING = 400, 1e-3, 0.98


@dataclass(frozen=True)
class _Piece:
    """N entries without faults, as a translator reads them.

    Attributes:
        sources, targets: of the translator, N phrases each.
        hashes: uint32, shape (N,), fingerprints of the pairs.
    """

    sources: Phrases
    targets: Phrases
    hashes: npt.NDArray[np.uint32]

    def part(self, first: int, last: int) -> _Piece:
        return _Piece(self.sources.part(first, last), self.targets.part(first, last), self.hashes[first:last])

    @classmethod
    def joined(cls, pieces: list[_Piece]) -> _Piece:
        sources = Phrases.concatenate([piece.sources for piece in pieces])
        targets = Phrases.concatenate([piece.targets for piece in pieces])
        return cls(sources, targets, np.concatenate([piece.hashes for piece in pieces]))


class NeuralScores:
    """Scores of a translator; a similarity source whose one column is a logarithm.

    Which side of the table the translator reads is told by its vocabularies: that of which it knows more words.

    Args:
        model: the translator.
        check: whether it fits the table; not asked if None.
        reading: one of `READINGS`; see `phrasetool.neural.likelihood`.
        threads: windows that are worked on at a time.
        folder: for what is finished, so that interrupted work can go on; none if None.

    Attributes:
        too_long: entries of the last table with more words than it takes.

    Raises:
        ModelError: a softmax is asked for densities.
    """

    def __init__(
        self,
        model: NeuralModel,
        check: FitCheck | None = None,
        reading: str = READINGS[0],
        threads: int = 1,
        folder: str | None = None,
    ) -> None:
        if reading == "density" and not model.architecture.continuous:
            raise ModelError("the model's output is a softmax, which has no densities; ask for normalised scores")
        self.model, self.check, self.reading, self.threads = model, check, reading, threads
        self.too_long = 0
        self._folder = folder
        self._backward: bool | None = None

    @property
    def signature(self) -> str:
        """The model's part of the signature line."""
        return f"{self.model.signature}|reading:{self.reading}"

    @property
    def backward(self) -> bool:
        """Whether the translator reads the targets of the table; known once a table was looked at."""
        return bool(self._backward)

    @property
    def folder(self) -> str:
        """Of the model, as messages call it."""
        return self.check.folder if self.check else self.signature

    @property
    def column(self) -> str:
        """What its column holds."""
        return "p(source | target)" if self.backward else "p(target | source)"

    def reader(self, table: str) -> NeuralReader:
        """See `SimilaritySource`."""
        return NeuralReader(table, self)

    def orient(self, table: str, sample: TableSample) -> None:
        """Find out which side is its source, and whether it fits.

        Raises:
            DataError: it does not fit, or its column is there.
        """
        if self._backward is not None:
            return
        vocabularies = self.model.source_vocabulary, self.model.target_vocabulary
        known = [fit_of_sample(None, vocabularies, sample, swapped).known for swapped in (False, True)]
        self._backward = known[1] > known[0]
        if self.check is None:
            return
        self.check.judge(table, fit_of_sample(self._compare, vocabularies, sample, self._backward), lambda: None)
        if self.check.appended and (column := self._column_of(sample)) is not None:
            self.check.refuse_again(table, f"column {column + 1} already holds the scores")

    def scores(self, sources: Phrases, targets: Phrases) -> DoubleArray:
        """Of N pairs in its words and its direction, float64, shape (N,); NaN where it says nothing."""
        from phrasetool.neural.pair_batches import scores_of_pairs

        with one_torch_thread():
            return scores_of_pairs(self.model.network, sources, targets, self.reading, self.model.temperature)

    def parts(self) -> ScoreParts | None:
        """Where finished windows are kept."""
        if self._folder is None:
            return None
        from moses_compat.measures.neural.score_parts import ScoreParts

        return ScoreParts(self._folder, f"{self.signature}|{self.column}|window:{WINDOW}")

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Of the table's source and target."""
        own = self.model.source_vocabulary, self.model.target_vocabulary
        return own[::-1] if self.backward else own

    def piece(self, block: EntryBlock) -> _Piece:
        """The good entries of a block with fingerprints, read in `vocabularies`."""
        good = np.flatnonzero(~block.faulty)
        groups = np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))
        sides = block.sources.select(groups[good]), block.targets.select(good)
        sources, targets = sides[::-1] if self.backward else sides
        return _Piece(sources, targets, block.fingerprints[good])

    def _compare(self, sources: Phrases, targets: Phrases) -> Callable[[Int64Array, Int64Array], FloatArray]:
        """Compares pairs by what a word scores, see `models.fit`."""

        def fits(rows: Int64Array, numbers: Int64Array) -> FloatArray:
            chosen = targets.select(numbers)
            worth = self.scores(sources.select(rows), chosen) / (chosen.lengths + 1)
            return np.nan_to_num(worth, nan=_WORST).astype(np.float32)

        return fits

    def _column_of(self, sample: TableSample) -> int | None:
        """The score column, from 0, that holds what it would write; None if there is none."""
        parser = TableParser(*self.vocabularies(), sample.scores, range(max(sample.scores, 0)), fingerprints=True)
        block = parser(0, sample.text)[0]
        piece = self.piece(block).part(0, _LINES)
        written = scale_logarithms(self.scores(piece.sources, piece.targets).astype(np.float32))
        there = block.columns[~block.faulty][:_LINES]
        if not len(written) or np.ptp(written) <= 0:
            return None
        agreeing = (np.abs(there - written[:, None]) <= _NEAR * written[:, None]).mean(0)
        return int(np.argmax(agreeing)) if len(agreeing) and agreeing.max() >= _AGREEING else None


class NeuralReader(SimilarityReader):
    """A translator at work on one table."""

    def __init__(self, table: str, source: NeuralScores) -> None:
        self._table, self._source = table, source
        self._ready: deque[NeuralOpinions] = deque()

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """See `SimilarityReader`."""
        sample, taken = TableSample.take(raws)
        if sample:
            self._source.orient(self._table, sample)
        yield from self.scored(chain(emptied(taken), raws))

    def scored(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """The blocks, each when its entries are scored."""
        source = self._source
        source.too_long = 0
        parts = source.parts()
        held: deque[tuple[RawBlock, Mask]] = deque()
        done = OpinionQueue()

        def parse(raw: RawBlock) -> tuple[RawBlock, Mask, _Piece]:
            parser = TableParser(*source.vocabularies(), raw.scores, fingerprints=True)
            block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
            return raw, block.faulty, source.piece(block)

        def pieces() -> Iterator[_Piece]:
            for raw, faulty, piece in run(raws, parse, source.threads):
                held.append((raw, faulty))
                yield piece

        def score(item: tuple[int, _Piece]) -> tuple[int, _Piece, FloatArray, bool]:
            number, window = item
            found = parts.read(number, window.hashes) if parts else None
            new = found is None
            if found is None:
                found = source.scores(window.sources, window.targets).astype(np.float32)
            return number, window, found, new

        # Windows are what is done side by side.
        with one_torch_thread():
            for number, window, scores, new in run(enumerate(_windows(pieces())), score, source.threads):
                # In order, so that nothing is added to the parts of another table or model before they are refused.
                if parts and new:
                    parts.write(number, window.hashes, scores)
                done.put(self._opinions(window, scores))
                while held and done.size >= int(np.count_nonzero(~held[0][1])):
                    raw, faulty = held.popleft()
                    self._ready.append(done.take_block(faulty))
                    yield raw
        # Of faulty lines alone.
        while held:
            raw, faulty = held.popleft()
            self._ready.append(done.take_block(faulty))
            yield raw

    def take(self, lines: int) -> NeuralOpinions:
        """See `SimilarityReader`."""
        return self._ready.popleft()

    def score(self, block: EntryBlock, columns: DoubleArray, taken: NeuralOpinions) -> Scores:
        """See `SimilarityReader`; one column, of logarithms."""
        return Scores(taken.logs[:, None], taken.opinion, logarithms=True)

    def _opinions(self, window: _Piece, scores: FloatArray) -> NeuralOpinions:
        from phrasetool.neural.pair_batches import is_too_long

        says = ~np.isnan(scores)
        self._source.too_long += int(is_too_long(window.sources, window.targets).sum())
        opinion = says & has_known_word(window.sources) & has_known_word(window.targets)
        return NeuralOpinions(scores, window.targets.lengths + 1, opinion)


def _windows(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """The same entries, `WINDOW` at a time."""
    held: list[_Piece] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece.hashes)
        if size >= WINDOW:
            joined = _Piece.joined(held)
            whole = size - size % WINDOW
            for first in range(0, whole, WINDOW):
                yield joined.part(first, first + WINDOW)
            held, size = [joined.part(whole, size)], size - whole
    if size:
        yield _Piece.joined(held)


def emptied(raws: list[Any]) -> Iterator[Any]:
    """The elements in order; none is held any longer than it takes."""
    raws.reverse()
    while raws:
        yield raws.pop()
