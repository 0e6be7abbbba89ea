"""Measurement of a table for its report, without its lines.

The table is read three times: for the inspection that `inspect` and `binarize` also use; for numbers of every entry;
and for the lines of the entries that are shown.  Memory: 14 bytes per entry, 8 more with a model, 2 with a smaller
table and 1 with a bitext, and 14 bytes per source; in addition up to 40 bytes per entry while blocks are joined.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.bitexts import check_line_counts
from moses_compat.corpora.texts import read_sentences
from moses_compat.files.streams import Input
from moses_compat.ini.moses_ini import FeatureLine, MosesIni
from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import find_table
from moses_compat.jobs.prune_ranking import measures_of
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE
from moses_compat.lines.hashes import PairSet, hash_pairs, hash_words, side_keys
from moses_compat.measures.entry_reader import EntryReader, Item
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.pair_test import read_indexes
from moses_compat.measures.similarities import ModelSimilarities
from moses_compat.table_report.texts import (
    BitextFit,
    BitextLookup,
    Coverage,
    KnownWords,
    WordMarks,
    cover,
    distinct_words,
)
from moses_compat.tables.blocks import BLOCK_BYTES, RawBlock, TableScan
from moses_compat.tables.inspect import LoaderVerdict, TableSummary, inspect_table, verdicts
from moses_compat.tables.opening import check_plausible
from moses_compat.tables.phrase_index import TableLine
from phrasetool.errors import DataError
from phrasetool.models.fit import ModelCompatibility
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.scoring import has_known_word
from phrasetool.phrases import FloatArray, Int64Array, Mask, Phrases, prefix_sums
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray
from phrasetool.pruning.decision import rank
from phrasetool.pruning.methods import parse_method
from phrasetool.pruning.protection import DEFAULT_COUNT, KeepBest, frequent_translations
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.watch import SILENT, Watch

# The method and protection of `prune --threshold` by default.
METHOD = parse_method("semantic")
BEST = KeepBest(10, "all", DEFAULT_COUNT)
# Number of entries whose sources are paired with other targets, for the similarities of random pairs.
_RANDOM = 20_000
# Bits of `EntryNumbers.in_bitext`.
_OCCUR_TOGETHER, _CONSISTENT = np.uint8(1), np.uint8(2)
# In `SourceNumbers.complete`: whether the joint counts of a source add up to its own count.
UNKNOWN, EQUAL, FEWER, MORE = range(4)
_MOST = 255
# Tolerance of sums of counts, because counts are written with six digits.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class ReportRequest:
    """A report about a table.

    Attributes:
        table: the file.
        model_folder: model of the similarities; None for no similarities.
        ini: moses.ini that is meant to load the table.
        bitext: source and target side of the bitext of the table.
        development: source and reference of a development set.
        small: pruned table that is compared with the table.
        seed: seed of the sample and of the random pairs.
        threads: number of worker threads.
        block_bytes: approximate number of bytes of a block of text.
    """

    table: str
    model_folder: str | None = None
    ini: str | None = None
    bitext: tuple[str, str] | None = None
    development: tuple[str, str] | None = None
    small: str | None = None
    seed: int = 1
    threads: int = 1
    block_bytes: int = BLOCK_BYTES

    def scan(self, watch: Watch) -> TableScan:
        """Return settings for reading tables; malformed lines are kept, because the report describes them."""
        return TableScan("keep", self.threads, self.block_bytes, allow_empty=True, force=True, warn=watch.warn)


@dataclass(frozen=True)
class EntryNumbers:
    """Numbers of the N lines of a table.

    Attributes:
        good: bool, shape (N,), whether the line is an entry; the other numbers of other lines are undefined.
        target_words: uint8, shape (N,), words of the target, at most 255.
        joint: float32, shape (N,), joint counts; NaN for a missing count.
        targets: uint64, shape (N,), keys of the targets.
        similarity: float32, shape (N,), similarity of the better direction; infinite if the model has no score; empty
            without a model.
        strength: float32, shape (N,), the largest threshold that keeps the entry; infinite if all do; empty without a
            model.
        kept: bool, shape (N,), whether the smaller table has the entry; empty without one.
        frequent: bool, shape (N,), whether the entry is a frequent mutual translation (see `frequent_translations`);
            empty without a smaller table.
        in_bitext: uint8, shape (N,), bits `_OCCUR_TOGETHER` and `_CONSISTENT`; empty without a bitext.
    """

    good: Mask
    target_words: npt.NDArray[np.uint8]
    joint: FloatArray
    targets: HashArray
    similarity: FloatArray
    strength: FloatArray
    kept: Mask
    frequent: Mask
    in_bitext: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class SourceNumbers:
    """Numbers of the G source groups of a table.

    Attributes:
        lines: int32, shape (G,), lines of each group, including malformed ones.
        words: uint8, shape (G,), words of the source, at most 255.
        keys: uint64, shape (G,), keys of the sources; 0 if no line of the group is an entry.
        complete: uint8, shape (G,), whether the joint counts add up to the count of the source.
    """

    lines: npt.NDArray[np.int32]
    words: npt.NDArray[np.uint8]
    keys: HashArray
    complete: npt.NDArray[np.uint8]

    @property
    def offsets(self) -> Int64Array:
        """The first line of each group, and the end of the last, int64, shape (G + 1,)."""
        return prefix_sums(self.lines)


@dataclass(frozen=True)
class Similarity:
    """Similarities of a model.

    Attributes:
        signature: signature of the model.
        fit: compatibility of the model with the first entries; None if these are too few.
        random: float32, similarities of random pairs with known words (sources with the target of another entry), in
            the better direction.
    """

    signature: str
    fit: ModelCompatibility | None
    random: FloatArray


@dataclass(frozen=True)
class IniFit:
    """The feature of a moses.ini for a table.

    Attributes:
        ini: the ini.
        feature: the feature that the table belongs to.
    """

    ini: MosesIni
    feature: FeatureLine


@dataclass(frozen=True)
class SmallTable:
    """A smaller table.

    Attributes:
        path: the file.
        lines: its lines.
        pairs: its different pairs.
        others: pairs that the larger table lacks.
    """

    path: str
    lines: int
    pairs: int
    others: int


@dataclass(frozen=True)
class MeasuredReport:
    """All measurements of a report.

    Attributes:
        request: the request.
        summary, loaders: results of the inspection.
        file_bytes: size of the file.
        entries, sources: numbers of the entries and sources.
        derived: number of entries whose joint count was derived from two counts.
        target_words: number of running words of all targets.
        similarity, coverage, bitext, ini, small: results for optional inputs; None for a missing input.
        reference: words of the reference of the development set that occur in targets.
    """

    request: ReportRequest
    summary: TableSummary
    loaders: Sequence[LoaderVerdict]
    file_bytes: int
    entries: EntryNumbers
    sources: SourceNumbers
    derived: int
    target_words: int
    similarity: Similarity | None = None
    coverage: Coverage | None = None
    reference: KnownWords | None = None
    bitext: BitextFit | None = None
    ini: IniFit | None = None
    small: SmallTable | None = None


_Numbers = TypeVar("_Numbers", EntryNumbers, SourceNumbers)


class _Part(NamedTuple):
    """Numbers of a block."""

    entries: EntryNumbers
    sources: SourceNumbers
    derived: int
    running: int
    drawn: tuple[Phrases, Phrases] | None
    marks: tuple[Int64Array, ...]
    position: int


_TYPES = {
    "good": np.bool_, "target_words": np.uint8, "joint": np.float32, "targets": np.uint64, "similarity": np.float32,
    "strength": np.float32, "kept": np.bool_, "frequent": np.bool_, "in_bitext": np.uint8, "lines": np.int32,
    "words": np.uint8, "keys": np.uint64, "complete": np.uint8,
}  # fmt: skip


@dataclass
class _BlockMeasurer:
    """Measurement of a block; safe to call in threads.

    Attributes:
        reader: parses and scores blocks.
        drawn: lines for random pairs, int64, ascending.
        pairs: pairs of the smaller table.
        lookup: looks up entries in the bitext.
        reference: words of the reference of a development set.
        model: whether the reader has a model.
    """

    reader: EntryReader
    drawn: Int64Array
    pairs: PairSet | None
    lookup: BitextLookup | None
    reference: WordMarks | None
    model: bool

    def __call__(self, item: Item) -> _Part:
        raw = item[0]
        read = self.reader(item)
        block, counts = read.block, read.counts
        good = ~block.malformed
        rows = np.flatnonzero(good)
        target_starts, target_ends = block.source_ends[rows] + 3, block.target_ends[rows]
        target_words = np.zeros(len(good), np.uint8)
        lengths = hash_words(raw.text, target_starts, target_ends).lengths
        target_words[rows] = np.minimum(lengths, _MOST)
        joint = counts.values[:, OF_PAIR]
        keys = np.zeros((2, len(good)), np.uint64)
        keys[:, rows] = side_keys(raw.text, raw.line_offsets, rows)
        heads = block.group_offsets[:-1]
        similarities, strength = np.zeros((2, 0), np.float32)
        if self.model:
            ranking = rank(METHOD, measures_of(read, occurrences=True))
            similarities = ranking.scores.astype(np.float32)
            # This loses no precision, because similarities have single precision.
            strength = ranking.strengths(BEST).astype(np.float32)
        kept = frequent = np.zeros(0, np.bool_)
        if self.pairs is not None:
            frequent = frequent_translations(counts.values, DEFAULT_COUNT)
            kept = self.pairs.find(hash_pairs(raw.text, raw.line_offsets, good))
        in_bitext, marks = np.zeros(0, np.uint8), []
        if self.lookup is not None:
            in_bitext = np.zeros(len(good), np.uint8)
            sources = self.lookup.marks[0].read(raw.text, block.line_offsets[rows], block.source_ends[rows])
            targets = self.lookup.marks[1].read(raw.text, target_starts, target_ends)
            together, consistent = self.lookup(sources, targets, joint[rows])
            in_bitext[rows] = together * _OCCUR_TOGETHER + consistent * _CONSISTENT
            marks += [distinct_words(sources), distinct_words(targets)]
        if self.reference is not None:
            marks.append(distinct_words(self.reference.read(raw.text, target_starts, target_ends)))
        of_entries = EntryNumbers(
            good, target_words, joint.astype(np.float32), keys[1], similarities, strength, kept, frequent, in_bitext
        )
        of_sources = SourceNumbers(
            np.diff(block.group_offsets).astype(np.int32), np.minimum(block.source_lengths, _MOST).astype(np.uint8),
            np.maximum.reduceat(keys[0], heads) if len(heads) else keys[0], _complete(counts.values, good, heads),
        )  # fmt: skip
        return _Part(
            of_entries, of_sources, int(counts.derived.sum()), int(lengths.sum()),
            self._drawn(raw, block.group_offsets, block.sources, block.targets, good), tuple(marks), raw.position,
        )  # fmt: skip

    def _drawn(
        self, raw: RawBlock, offsets: Int64Array, sources: Phrases, targets: Phrases, good: Mask
    ) -> tuple[Phrases, Phrases] | None:
        """Return the phrases of the drawn lines of a block."""
        if not self.model:
            return None
        first, last = np.searchsorted(self.drawn, [raw.first_entry, raw.first_entry + raw.lines])
        rows = self.drawn[first:last] - raw.first_entry
        rows = rows[good[rows]]
        return sources.select(np.searchsorted(offsets, rows, "right") - 1), targets.select(rows)


def _complete(counts: npt.NDArray[np.float64], good: Mask, heads: Int64Array) -> npt.NDArray[np.uint8]:
    """Compare the joint counts of sources to their counts: `UNKNOWN`, `EQUAL`, `FEWER` or `MORE`; uint8, shape (G,)."""
    if not len(heads):
        return np.zeros(0, np.uint8)
    joint, own = counts[:, OF_PAIR], counts[:, OF_SOURCE]
    missing = (np.isnan(joint) | np.isnan(own)) & good
    total = np.add.reduceat(np.where(good & ~missing, joint, 0), heads)
    source = np.maximum.reduceat(np.where(good & ~missing, own, 0), heads)
    known = (np.add.reduceat(missing, heads) == 0) & (source > 0)
    state = np.full(len(heads), EQUAL, np.uint8)
    state[total < source * (1 - _ROUNDING)] = FEWER
    state[total > source * (1 + _ROUNDING)] = MORE
    state[~known] = UNKNOWN
    return state


def measure_report(request: ReportRequest, watch: Watch = SILENT) -> MeasuredReport:
    """Measure a table.

    Raises:
        DataError: a file cannot be read or is of another kind, or texts have different numbers of lines.
        ModelError: the model is not a model of phrase pairs.
    """
    scan = request.scan(watch)
    model = BilingualModel.load(request.model_folder) if request.model_folder else None
    ini = _read_ini(request)
    small, pairs = _read_small(request, scan, watch)
    lookup = BitextLookup(*read_indexes(*request.bitext, request.threads)) if request.bitext else None
    text, reference, reference_words = _read_development(request)
    with Input(request.table) as source, watch.file("inspect", source.size()) as progress:
        check_plausible(source, scan)
        summary = inspect_table(source, progress, request.threads, request.block_bytes)
    rng = np.random.default_rng([request.seed, 1])
    drawn = np.sort(rng.choice(summary.entries, min(_RANDOM, summary.entries), replace=False)).astype(np.int64)
    check = FitCheck(request.model_folder or "", watch, force=True)
    parts: list[_Part] = []
    with Input(request.table) as source, watch.file("measure", source.size()) as progress:
        similar = ModelSimilarities(model, check) if model else None
        reader = EntryReader(source, scan, similar)
        measurer = _BlockMeasurer(reader, drawn, pairs, lookup, reference, model is not None)
        lines = 0
        for part in run(reader.items(), measurer, request.threads):
            marks = [*(lookup.marks if lookup else ()), *([reference] if reference else [])]
            for words, block_words in zip(marks, part.marks, strict=True):
                words.add(block_words)
            parts.append(part)
            lines += len(part.entries.good)
            progress(part.position, lines)
        reader.finish(lines)
    if lines != summary.entries:
        raise _changed(request.table)
    entries = _joined(EntryNumbers, [part.entries for part in parts])
    sources = _joined(SourceNumbers, [part.sources for part in parts])
    similarity = _similarity(model, check.fit, parts, request.seed) if model else None
    measured = MeasuredReport(
        request, summary, verdicts(summary), os.path.getsize(request.table), entries, sources,
        sum(part.derived for part in parts), sum(part.running for part in parts), similarity, ini=ini,
    )  # fmt: skip
    if small and pairs:
        measured = replace(measured, small=replace(small, others=pairs.never_found()))
    if lookup:
        measured = replace(measured, bitext=_bitext_fit(lookup, entries))
    if text is not None and reference:
        measured = replace(
            measured, coverage=cover(text, sources.keys, sources.words.astype(np.int64)),
            reference=KnownWords.of(reference, reference_words),
        )  # fmt: skip
    return measured


def _joined(kind: type[_Numbers], parts: Sequence[_Numbers]) -> _Numbers:
    """Concatenate the numbers of blocks to those of the table."""
    names = [field.name for field in fields(kind)]
    return kind(**{name: _all_blocks(parts, name) for name in names})


def _all_blocks(parts: Sequence[Any], name: str) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, _TYPES[name]), *(getattr(part, name) for part in parts)])


def _read_ini(request: ReportRequest) -> IniFit | None:
    if request.ini is None:
        return None
    ini = read_moses_ini(request.ini)
    return IniFit(ini, find_table(ini, request.table))


def _read_small(request: ReportRequest, scan: TableScan, watch: Watch) -> tuple[SmallTable | None, PairSet | None]:
    """Read the pairs of the smaller table."""
    if request.small is None:
        return None, None

    def work(raw: RawBlock) -> tuple[RawBlock, HashArray]:
        return raw, hash_pairs(raw.text, raw.line_offsets, np.ones(raw.lines, np.bool_))

    hashes: list[HashArray] = []
    lines = 0
    with Input(request.small) as source, watch.file("compare", source.size()) as progress:
        check_plausible(source, scan)
        for raw, block_hashes in run(scan.raw_blocks(source), work, request.threads):
            hashes.append(block_hashes)
            lines += raw.lines
            progress(raw.position, lines)
    pairs = PairSet(hashes)
    return SmallTable(request.small, lines, len(pairs), 0), pairs


def _read_development(request: ReportRequest) -> tuple[bytes | None, WordMarks | None, Int64Array]:
    """Read the source text, the words of the reference, and the ids of the reference's running words."""
    if request.development is None:
        return None, None, np.zeros(0, np.int64)
    source, reference = request.development
    text, reference_text = read_sentences(source), read_sentences(reference)
    symbols = Symbols()
    sentences = symbols.read_lines(reference_text)
    check_line_counts(source, len(Symbols().read_lines(text)), reference, len(sentences))
    return text, WordMarks(symbols), sentences.words.astype(np.int64)


def _similarity(model: BilingualModel, fit: ModelCompatibility | None, parts: Sequence[_Part], seed: int) -> Similarity:
    """Compute the similarities of drawn sources with targets of other entries."""
    drawn = [part.drawn for part in parts if part.drawn]
    sources, targets = (Phrases.concatenate([sides[side] for sides in drawn]) for side in range(2))
    rng = np.random.default_rng([seed, 2])
    others = targets.select(rng.permutation(len(targets)))
    known = has_known_word(sources) & has_known_word(others)
    random = model.scorer().score_pairs(sources.select(known), others.select(known)).max(axis=1, initial=-1)
    return Similarity(model.signature, fit, random.astype(np.float32))


def _bitext_fit(lookup: BitextLookup, entries: EntryNumbers) -> BitextFit:
    source, target, known_pairs = lookup.known_pairs()
    counted = entries.good & ~np.isnan(entries.joint)
    together, consistent = ((entries.in_bitext & bit) > 0 for bit in (_OCCUR_TOGETHER, _CONSISTENT))
    return BitextFit(
        lookup.sides[0].sentences.sentences, source, target, known_pairs, int(entries.good.sum()),
        int((together & entries.good).sum()), int(counted.sum()), int((consistent & counted).sum()),
    )  # fmt: skip


def lines_at(path: str, scan: TableScan, rows: Iterable[int], watch: Watch = SILENT) -> dict[int, TableLine]:
    """Read some lines of a table.

    Args:
        path: the file.
        scan: settings for reading the table.
        rows: numbers of the lines, from 0.
        watch: progress listener.

    Returns:
        Number of the line, from 0 -> the line.

    Raises:
        DataError: the table has fewer lines.
    """
    numbers = np.unique(np.fromiter(rows, np.int64))
    lines: dict[int, TableLine] = {}
    if not len(numbers):
        return lines
    with Input(path) as source, watch.file("read examples", source.size()) as progress:
        for raw in scan.raw_blocks(source):
            first, last = np.searchsorted(numbers, [raw.first_entry, raw.first_entry + raw.lines])
            for row in numbers[first:last].tolist():
                start, end = raw.line_offsets[row - raw.first_entry : row - raw.first_entry + 2].tolist()
                fields = raw.text[start:end].tobytes().strip(b"\r\n").split(b"|||")
                lines[row] = TableLine(row + 1, tuple(part.strip(b" \t") for part in fields))
            progress(raw.position, raw.first_entry + raw.lines)
    if len(lines) < len(numbers):
        raise _changed(path)
    return lines


def _changed(path: str) -> DataError:
    return DataError(path, "has changed while it was read, as it has another number of lines now")


def draw_rows(good: Mask, count: int, seed: int) -> Int64Array:
    """Draw entries.

    Args:
        good: which lines are entries, bool, shape (N,).
        count: maximum number of entries to draw.
        seed: random seed.

    Returns:
        Numbers of the drawn lines, int64, ascending.
    """
    rows = np.flatnonzero(good)
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng([seed, 3]).choice(rows, count, replace=False))
