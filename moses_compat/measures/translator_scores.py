"""Scores of entries by translators: one direction each, or both directions as similarities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.measures.model_fit import FitCheck, TableSample, drain, fit_of_sample
from moses_compat.measures.similarities import OneProcessReader, SimilarityReader
from moses_compat.measures.windowed_scores import COLUMN_LINES, ScoredEntries, WindowedScores, column_that_holds
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError, ModelError
from phrasetool.nn.device import one_torch_thread
from phrasetool.phrase_encoder.scoring import Scores, has_known_word
from phrasetool.phrases import DoubleArray, EntryBlock, FloatArray, Int64Array, Mask, Phrases
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.settings import READINGS
from phrasetool.vocabulary import Vocabulary

# Score per word of a pair that cannot be scored, for the comparison of pairs.
_WORST = -50.0


@dataclass(frozen=True)
class _Piece:
    """N valid entries as word ids of a translator.

    Attributes:
        sources, targets: source and target phrases of the translator, N each.
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


class NeuralScores(WindowedScores):
    """Scores of a translator; a similarity source with one column, a logarithm.

    The translator may read either side of the table: the direction with more known words is used.

    Args:
        model: the translator.
        check: the check that it matches the table; None for no check.
        reading: one of `READINGS`; see `phrasetool.translator.decoding`.
        threads: number of windows that are processed in parallel.
        folder: folder for finished scores, so that interrupted work can be resumed; None to store nothing.

    Attributes:
        too_long: number of entries of the last table with more words than the model reads.

    Raises:
        ModelError: densities of a softmax are requested.
    """

    def __init__(
        self,
        model: TranslatorModel,
        check: FitCheck | None = None,
        reading: str = READINGS[0],
        threads: int = 1,
        folder: str | None = None,
    ) -> None:
        if reading == "density" and not model.architecture.continuous:
            raise ModelError("the model's output is a softmax, which has no densities; request normalised scores")
        super().__init__(check, threads, folder)
        self.model, self.reading = model, reading
        self._backward: bool | None = None

    @property
    def signature(self) -> str:
        """The model's part of the signature line."""
        return f"{self.model.signature}|reading:{self.reading}"

    @property
    def backward(self) -> bool:
        """Whether the translator reads the targets of the table; known after the check of a table."""
        return bool(self._backward)

    @property
    def column(self) -> str:
        """Name of the score column."""
        return "p(source | target)" if self.backward else "p(target | source)"

    def orient(self, table: str, sample: TableSample) -> None:
        """Determine which side of the table the translator reads, and check that it matches.

        Raises:
            DataError: the translator does not match, or its column already exists.
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
        """Return the scores of N pairs in the translator's direction, float64, shape (N,); NaN without a score."""
        from phrasetool.translator.decoding import scores_of_pairs

        with one_torch_thread():
            return scores_of_pairs(self.model.network, sources, targets, self.reading, self.model.temperature)

    def score(self, window: _Piece) -> FloatArray:
        """Return the scores of a window."""
        return self.scores(window.sources, window.targets).astype(np.float32)

    def parse(self, raw: RawBlock) -> tuple[Mask, _Piece]:
        """Return the malformed lines of a block, and its valid entries."""
        parser = TableParser(*self.vocabularies(), raw.scores, fingerprints=True)
        block = parser(raw.first_entry, raw.text, raw.line_offsets)[0]
        return block.malformed, self.piece(block)

    def scored_entries(self, window: _Piece, scores: FloatArray) -> ScoredEntries:
        """Return the scores of a window, and count pairs that are too long."""
        from phrasetool.translator.decoding import is_too_long

        has_score = ~np.isnan(scores)
        self.too_long += int(is_too_long(window.sources, window.targets).sum())
        scored = has_score & has_known_word(window.sources) & has_known_word(window.targets)
        return ScoredEntries(scores, window.targets.lengths + 1, scored)

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the vocabularies of the table's source and target."""
        own = self.model.source_vocabulary, self.model.target_vocabulary
        return own[::-1] if self.backward else own

    def piece(self, block: EntryBlock) -> _Piece:
        """Return the valid entries of a block with fingerprints, parsed with `vocabularies`."""
        good = np.flatnonzero(~block.malformed)
        groups = np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))
        sides = block.sources.select(groups[good]), block.targets.select(good)
        sources, targets = sides[::-1] if self.backward else sides
        return _Piece(sources, targets, block.fingerprints[good])

    def _compare(self, sources: Phrases, targets: Phrases) -> Callable[[Int64Array, Int64Array], FloatArray]:
        """Return a function that compares pairs by their scores per word, see `models.fit`."""

        def fits(rows: Int64Array, numbers: Int64Array) -> FloatArray:
            chosen = targets.select(numbers)
            per_word = self.scores(sources.select(rows), chosen) / (chosen.lengths + 1)
            return np.nan_to_num(per_word, nan=_WORST).astype(np.float32)

        return fits

    def _column_of(self, sample: TableSample) -> int | None:
        """Return the score column, from 0, that already holds the translator's scores; None if absent."""
        parser = TableParser(*self.vocabularies(), sample.scores, range(max(sample.scores, 0)), fingerprints=True)
        block = parser(0, sample.text)[0]
        piece = self.piece(block).part(0, COLUMN_LINES)
        scores = self.scores(piece.sources, piece.targets).astype(np.float32)
        return column_that_holds(scores, block.columns[~block.malformed][:COLUMN_LINES])


@dataclass(frozen=True)
class NeuralSimilarities:
    """Similarities in both directions from translators or other models: the mean probability of a word.

    A similarity is exp(score / (words of the translator's target + 1)), in (0, 1]: the geometric mean of the
    probabilities, or of the relative densities, of the words and the end.  With one translator, both directions are
    equal, as they are for the probability of a classifier and the cosine of a syntactic encoder.

    Args:
        models: one model, or a translator for each direction.
    """

    models: tuple[WindowedScores, ...]

    @property
    def signature(self) -> str:
        """The signatures of the models."""
        return "+".join(model.signature for model in self.models)

    @property
    def check(self) -> FitCheck | None:
        """The check of the first model."""
        return self.models[0].check

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table."""
        return _BothReader(table, self.models)


class _BothReader(OneProcessReader):
    owner = "a translator"

    def __init__(self, table: str, models: tuple[WindowedScores, ...]) -> None:
        self._table, self._models = table, models
        self._readers = [model.reader(table) for model in models]

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        sample, blocks = TableSample.take(raws)
        if sample:
            for model in self._models:
                model.orient(self._table, sample)
            if len(self._models) == 2 and self._models[0].backward == self._models[1].backward:
                raise DataError(
                    self._table, f"both models compute {self._models[0].column}; expected one model per direction"
                )
        raws = chain(drain(blocks), raws)
        for reader in self._readers:
            raws = reader.scored(raws)
        return raws

    def take(self, lines: int) -> list[ScoredEntries]:
        both = [reader.take(lines) for reader in self._readers]
        return both[::-1] if self._models[0].backward else both

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        models = self._models[:: -1 if self._models[0].backward else 1]
        each = [
            model.similarities(part.logs / part.words.astype(np.float32))
            for model, part in zip(models, taken, strict=True)
        ]
        scored = np.logical_and.reduce([part.scored for part in taken])
        similarities = np.column_stack([each[0], each[-1]]).astype(np.float32)
        similarities[~scored] = 0
        return Scores(similarities, scored)
