"""Checks, on a sample of the first entries, that a model matches a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from moses_compat.lines.insert_scores import SCALES, scale_similarities
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import TableParser, tokenise
from phrasetool.errors import DataError
from phrasetool.models.fit import MIN_SWAP_GAIN, Comparison, ModelCompatibility, measure_fit, mismatch_reason
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.scoring import by_cosine
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array, Phrases
from phrasetool.vocabulary import Vocabulary
from phrasetool.watch import SILENT, Watch, raise_or_warn

Element = TypeVar("Element")

SAMPLE = 2000
# Bytes of a table from which the sample is drawn; a sorted table begins with punctuation and numbers.
LOOK_AHEAD = 1 << 24
# Tolerance for similarities that were computed by another processor and written with six decimals.
_NEAR = 1e-4
# Number of lines that suffices to recognise columns, and the share of them that must agree.
_LINES, _AGREEING = 400, 0.98


@dataclass(frozen=True)
class TableSample:
    """Some lines from the beginning of a table.

    Attributes:
        text: the lines.
        scores: number of scores per entry of the table.
    """

    text: ByteArray
    scores: int

    @staticmethod
    def first_blocks(raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Yield the blocks from which a sample is drawn."""
        size = 0
        for raw in raws:
            yield raw
            size += len(raw.text)
            if size >= LOOK_AHEAD:
                break

    @classmethod
    def of(cls, taken: Sequence[RawBlock], seed: int = 1) -> TableSample | None:
        """Draw a sample, spread over the first blocks; None for a table without lines."""
        if not taken:
            return None
        # The choice of lines does not depend on the size of the blocks.
        positions = _places(min(sum(len(raw.text) for raw in taken), LOOK_AHEAD), seed)
        return cls(_lines_at([raw.text for raw in taken], positions), taken[-1].scores)

    @classmethod
    def take(cls, raws: Iterator[RawBlock], seed: int = 1) -> tuple[TableSample | None, list[RawBlock]]:
        """Read the first blocks; return a sample and these blocks."""
        blocks = list(cls.first_blocks(raws))
        return cls.of(blocks, seed), blocks

    def entries(self, vocabularies: tuple[Vocabulary, Vocabulary]) -> EntryBlock:
        """Parse the lines, including all scores, with two vocabularies."""
        return TableParser(*vocabularies, self.scores, range(max(self.scores, 0)))(0, self.text)[0]


def _places(size: int, seed: int) -> Int64Array:
    """Return byte positions at which lines are drawn, ascending, spread evenly over `size` bytes."""
    drawn = np.random.default_rng(seed).random(SAMPLE)
    return ((np.arange(SAMPLE) + drawn) * (size / SAMPLE)).astype(np.int64)


def _lines_at(texts: Sequence[ByteArray], places: Int64Array) -> ByteArray:
    """Return the lines at byte positions, each line once.

    Args:
        texts: texts of consecutive whole lines.
        places: int64, ascending.
    """
    lines: list[bytes] = []
    first = 0
    for array in texts:
        text = array.tobytes() if len(array) < 1 << 16 else None
        last = -1
        for position in (places[(places >= first) & (places < first + len(array))] - first).tolist():
            if position < last:
                continue
            data, offset = (text, 0) if text is not None else _around(array, position)
            start = data.rfind(b"\n", 0, position - offset) + 1
            end = data.find(b"\n", position - offset)
            end = len(data) if end < 0 else end
            lines.append(data[start:end] + b"\n")
            last = offset + end + 1
        first += len(array)
    return np.frombuffer(b"".join(lines), np.uint8)


def _around(array: ByteArray, place: int) -> tuple[bytes, int]:
    """Return a part of the text that contains the whole line at a byte position, and the offset of the part."""
    reach = 1 << 10
    while True:
        start, end = max(place - reach, 0), min(place + reach, len(array))
        data = array[start:end].tobytes()
        middle = place - start
        before = start == 0 or data.rfind(b"\n", 0, middle) >= 0
        if before and (end == len(array) or data.find(b"\n", middle) >= 0):
            return data, start
        reach *= 4


def fit_of(model: BilingualModel, sample: TableSample, swapped: bool = False) -> ModelCompatibility:
    """Measure how well a model matches a table, optionally with source and target swapped."""
    vocabularies = model.source_vocabulary, model.target_vocabulary
    return fit_of_sample(by_cosine(model.scorer()), vocabularies, sample, swapped)


def fit_of_sample(
    compare: Comparison | None, vocabularies: tuple[Vocabulary, Vocabulary], sample: TableSample, swapped: bool
) -> ModelCompatibility:
    """Measure how well two vocabularies, and a comparison of phrases, match a table; see `measure_fit`.

    Args:
        swapped: whether the model's sources are the targets of the table.
    """
    block = sample.entries(vocabularies[::-1] if swapped else vocabularies)
    good = np.flatnonzero(~block.malformed)
    data = block.text.tobytes()
    starts, middles, ends = (
        positions[good].tolist() for positions in (block.line_offsets[:-1], block.source_ends, block.target_ends)
    )
    texts = (
        [data[start:end] for start, end in zip(starts, middles, strict=True)],
        [data[start + 3 : end] for start, end in zip(middles, ends, strict=True)],
    )
    phrases = block.sources.select(_groups(block)[good]), block.targets.select(good)
    if swapped:
        phrases, texts = phrases[::-1], texts[::-1]
    return measure_fit(compare, phrases, vocabularies, texts)


def columns_of(model: BilingualModel, sample: TableSample) -> int | None:
    """Return the first of the two score columns, from 0, that hold the similarities of a model; None if absent."""
    block = sample.entries((model.source_vocabulary, model.target_vocabulary))
    good = np.flatnonzero(~block.malformed)
    good = good[:: max(len(good) // _LINES, 1)]
    if not len(good) or sample.scores < 2:
        return None
    similarities = model.scorer().score_pairs(block.sources.select(_groups(block)[good]), block.targets.select(good))
    for scale in SCALES:
        written = scale_similarities(similarities, scale)
        if np.ptp(written) < 10 * _NEAR:
            continue
        for column in range(sample.scores - 1):
            near = np.abs(block.columns[good, column : column + 2] - written).max(1) <= _NEAR
            if near.mean() >= _AGREEING:
                return column
    return None


def _groups(block: EntryBlock) -> Int64Array:
    """Return the source group of each entry."""
    return np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))


def drain(elements: list[Element]) -> Iterator[Element]:
    """Yield and remove all elements of a list, in order, so that none is held longer than necessary."""
    elements.reverse()
    while elements:
        yield elements.pop()


class FitCheck:
    """Check that a model matches a table, before the table is processed.

    Args:
        folder: folder of the model, for messages.
        watch: receives a message on how well the model matches.
        force: only warn if the model does not match.
        appended: whether the model's similarities will be appended to the table; then the table must not have them yet.
        ahead: whether blocks may be processed while the sample is being drawn; then callers must hold back the results
            until the check has passed.

    Attributes:
        fit: how well the model matches; None if the sample was too small.
        judged: whether the check of a table has passed.
    """

    def __init__(
        self, folder: str, watch: Watch = SILENT, force: bool = False, appended: bool = False, ahead: bool = False
    ) -> None:
        self.folder = folder
        self.fit: ModelCompatibility | None = None
        self.watch, self._force, self._appended, self._ahead = watch, force, appended, ahead
        self.judged = False

    def look(self, table: str, model: BilingualModel, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Yield the blocks of a table; unless `ahead`, the first are held back until the model has been checked.

        Raises:
            DataError: the model does not match the table, or has already annotated it.
        """
        if not self.judged:
            held: list[RawBlock] = []
            for raw in TableSample.first_blocks(raws):
                held.append(raw)
                if self._ahead:
                    yield raw
            if sample := TableSample.of(held):
                self._check(table, model, sample)
            self.judged = True
            if not self._ahead:
                yield from drain(held)
            held.clear()
        yield from raws

    def judge(
        self,
        name: str,
        fit: ModelCompatibility,
        swapped: Callable[[], ModelCompatibility | None],
        better: float = MIN_SWAP_GAIN / 2,
    ) -> None:
        """Report how well the model matches the pairs of a file.

        Args:
            name: name of the file in messages.
            fit: fit on a sample.
            swapped: returns the fit with source and target swapped, if available.
            better: see `mismatch_reason`.

        Raises:
            DataError: the model does not match.
        """
        if mismatch := mismatch_reason(fit, swapped, better):
            self._refuse(DataError(name, f"the model {self.folder} does not match: {mismatch}", remedy="fit"))
        if fit.words:
            self.fit = fit
            self.watch.say(f"{self.folder} {fit.words}")

    def judge_pairs(self, name: str, model: BilingualModel, texts: Sequence[ByteArray]) -> None:
        """Check the model on training pairs in the format of `read_training_pairs`.

        Args:
            name: name of the file in messages.
            model: model in the folder.
            texts: text of the file, in blocks of whole lines.

        Raises:
            DataError: the model does not match.
        """
        from moses_compat.corpora.training_pairs import pair_places

        text = _lines_at(texts, _places(sum(map(len, texts)), 1))
        fields = pair_places(text)
        data = text.tobytes()

        def fit(swapped: bool) -> ModelCompatibility:
            sides: list[tuple[Phrases, Vocabulary, list[bytes]]] = []
            for first in (2, 0) if swapped else (0, 2):
                starts, ends = np.ascontiguousarray(fields[:, first]), np.ascontiguousarray(fields[:, first + 1])
                vocabulary = model.target_vocabulary if sides else model.source_vocabulary
                written = [data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
                sides.append((tokenise(text, starts, ends, vocabulary), vocabulary, written))
            (sources, source_vocabulary, source_texts), (targets, target_vocabulary, target_texts) = sides
            return measure_fit(
                by_cosine(model.scorer()),
                (sources, targets),
                (source_vocabulary, target_vocabulary),
                (source_texts, target_texts),
            )

        self.judge(name, fit(False), lambda: fit(True))

    def _check(self, table: str, model: BilingualModel, sample: TableSample) -> None:
        self.judge(table, fit_of(model, sample), lambda: fit_of(model, sample, swapped=True))
        if self._appended and (column := columns_of(model, sample)) is not None:
            self.refuse_again(table, f"columns {column + 1} and {column + 2} already hold the similarities")

    def refuse_again(self, table: str, what: str) -> None:
        """Reject a table that the model has already annotated.

        Args:
            what: clause that names the columns and their content.

        Raises:
            DataError: always, unless forced.
        """
        self._refuse(DataError(table, f"{what} of the model {self.folder}", remedy="go on"))

    @property
    def appended(self) -> bool:
        """Whether columns of the model will be appended to the table."""
        return self._appended

    def _refuse(self, error: DataError) -> None:
        raise_or_warn(error, self._force, self.watch.warn)
