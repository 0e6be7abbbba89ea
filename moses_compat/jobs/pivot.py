"""Build a pivot table from source-pivot and pivot-target tables of one or several pivot languages.

The tables of a pivot language are read into files (`store_table`), checked for common phrases (`check_overlap`), joined
batch by batch (`pivot`), and written as lines of Moses' tables (`PivotLines`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE, OF_TARGET, CountTally, CountUse
from moses_compat.lines.fields import content_end, find_separator, write_bars
from moses_compat.lines.hashes import hash_pairs
from moses_compat.lines.insert_scores import scale_similarities
from moses_compat.lines.numbers import (
    MAX_POSITION,
    MAX_WIDTH,
    TRAINED,
    is_point,
    point_error,
    read_position,
    require_trained_scores,
    write_integer,
    write_numbers,
)
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.opening import REORDERING_TABLE, check_plausible, open_table
from moses_compat.tables.parser import TableParser
from moses_compat.tables.source_order import not_sorted
from phrasetool.disk.columns import DiskColumn
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF, MINUS, PIPE, SPACE, copy_bytes, is_blank, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, FloatArray, Int32Array, Int64Array, prefix_sums
from phrasetool.pipeline import run
from phrasetool.pivot.batches import PivotTables, SourceBatch, batches
from phrasetool.pivot.links import CAPITALS, FIRST, ORDER, SECOND, Links, PivotCoverage, diagnose_mismatch
from phrasetool.pivot.paths import (
    BEST,
    FIXED_SUMS,
    PAIR_COUNT,
    SCORES,
    SUM_ORIENTATIONS,
    SUM_SIMILARITIES,
    TARGET_COUNT,
    PathRules,
    PathSums,
    compose_alignments,
    cut_by_paths,
    empty_alignments,
    number_targets,
    sum_paths,
)
from phrasetool.pivot.tables import FIXED_NUMBERS, ORIENTATIONS, PHRASE_END, SIMILARITIES, Ragged, TableRows, TableStore
from phrasetool.pruning.composition import HashArray
from phrasetool.text_splitting import split_words
from phrasetool.watch import SILENT, Watch

# Share of the probability mass of a first table's pivot phrases that are sources of the second table.  Measured: 0.89
# for German-English and English-Czech from the same sentences of Multi30k; 0.24 for Chinese-English and English-Spanish
# from Python's documentation without common sentences; 0.03 for documentation and captions of pictures; 0.01 to 0.02
# for another pivot language, or with both tables inverted.
LEAST_MASS, LOW_MASS = 0.025, 0.15


@borrowing_kernel
def _copy_phrase(text: ByteArray, start: int, end: int, out: ByteArray, place: int) -> int:
    """Copy the tokens of text[start:end], each followed by a space, and add `|||`; return the position after it."""
    i = skip_blanks(text, start, end)
    if i == end:
        out[place] = SPACE
        place += 1
    while i < end:
        last = token_end(text, i, end)
        place = copy_bytes(text, i, last, out, place)
        out[place] = SPACE
        place += 1
        i = skip_blanks(text, last, end)
    for _ in range(3):
        out[place] = PIPE
        place += 1
    return place


@exact_kernel
def _copy_phrases(text: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray, offsets: Int64Array) -> None:
    position = 0
    for k in range(len(starts)):
        offsets[k] = position
        position = _copy_phrase(text, starts[k], ends[k], out, position)
    offsets[len(starts)] = position


def copy_phrases(text: ByteArray, starts: Int64Array, ends: Int64Array) -> Ragged:
    """Return the phrases text[starts[k]:ends[k]], with one space between tokens and `PHRASE_END` at their ends."""
    out = np.empty(int((ends - starts).sum()) + (len(PHRASE_END) + 1) * len(starts), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    _copy_phrases(text, starts, ends, out, offsets)
    return Ragged(out[: offsets[-1]].copy(), offsets)


@exact_kernel
def _read_points(text: ByteArray, starts: Int64Array, ends: Int64Array, points: Int32Array, offsets: Int64Array) -> int:
    """Read the alignment points of the fields after the first `|||` of text[starts[k]:ends[k]].

    Returns the first line with a malformed field, or -1.
    """
    count = 0
    for k in range(len(starts)):
        offsets[k] = count
        end = content_end(text, starts[k], ends[k])
        bar = find_separator(text, starts[k], end)
        if bar < 0:
            continue
        more = find_separator(text, bar + 3, end)
        end = more if more >= 0 else end
        i = skip_blanks(text, bar + 3, end)
        while i < end:
            source, i = read_position(text, i, end)
            if i < end and text[i] == MINUS:
                target, i = read_position(text, i + 1, end)
            else:
                target = -1
            if source < 0 or target < 0 or max(source, target) > MAX_POSITION or (i < end and not is_blank(text[i])):
                return k
            points[count] = source << 16 | target
            count += 1
            i = skip_blanks(text, i, end)
    offsets[len(starts)] = count
    return -1


@dataclass(frozen=True)
class TableRequest:
    """Settings for reading a source-pivot or pivot-target table.

    Attributes:
        outer: index of the count of the side that is not in the pivot language.
        similarities: similarities of the entries, if any.
        orientations: orientations of the reordering table, if any.
        folder: folder for unnamed temporary files.
        count_use: the feature that needs a joint count of each entry, if any.
    """

    outer: int
    similarities: SimilaritySource | None = None
    orientations: Orientations | None = None
    folder: str | None = None
    count_use: CountUse | None = None

    @property
    def numbers(self) -> int:
        """The number of numeric columns of an entry."""
        more = SIMILARITIES * (self.similarities is not None) + ORIENTATIONS * (self.orientations is not None)
        return FIXED_NUMBERS + more


class Orientations:
    """The six probabilities of each line of a reordering table, stored on disk.

    Args:
        source: a table of type `wbe-msd-bidirectional-fe` or similar, in the order of a phrase table; at its beginning.
        folder: folder for unnamed temporary files.
        scan: settings for reading the table.

    Raises:
        DataError: the table is damaged or has a different number of scores.
    """

    def __init__(self, source: Input, folder: str | None, scan: TableScan) -> None:
        check_plausible(source, scan, REORDERING_TABLE)
        self.name = source.name
        self._values = DiskColumn(folder, np.float64, ORIENTATIONS)
        self._hashes = DiskColumn(folder, np.uint64)

        def work(raw: RawBlock) -> tuple[RawBlock, DoubleArray, HashArray]:
            if raw.scores not in (ORIENTATIONS, -1):
                message = f"the entries have {raw.scores} scores, expected the {ORIENTATIONS} of msd-bidirectional-fe"
                raise DataError(source.name, message, raw.first_entry + 1)
            parser = TableParser(scores=raw.scores, columns=range(max(raw.scores, 0)))
            block, faults = parser(raw.first_entry, raw.text, raw.line_offsets)
            for fault in faults:
                raise DataError(source.name, fault.message, fault.entry + 1)
            return raw, block.columns, hash_pairs(raw.text, raw.line_offsets, ~block.malformed)

        for raw, values, hashes in run(replace(scan, whole_groups=False).raw_blocks(source), work, scan.threads):
            self._values.append(np.ascontiguousarray(values))
            self._hashes.append(hashes)
            scan.progress(raw.position, len(self._hashes))

    def __len__(self) -> int:
        return len(self._hashes)

    def of(self, table: str, raw: RawBlock, block: EntryBlock) -> DoubleArray:
        """Return the probabilities of the lines of a block, float64, shape (N, 6).

        Raises:
            DataError: a line is missing, or belongs to another pair.
        """
        first, last = raw.first_entry, raw.first_entry + raw.lines
        hashes = self._hashes.read(first, last)
        own = hash_pairs(raw.text, raw.line_offsets, ~block.malformed)
        mismatches = np.flatnonzero((own[: len(hashes)] != hashes) & ~block.malformed[: len(hashes)])
        if len(hashes) < raw.lines or len(mismatches):
            line = first + (int(mismatches[0]) if len(mismatches) else len(hashes)) + 1
            raise DataError(self.name, f"is not in step with {table}: the pair differs or is missing", line)
        return self._values.read(first, last)


def store_table(source: Input, request: TableRequest, scan: TableScan) -> tuple[TableStore, int, CountTally]:
    """Read a sorted table with the four scores of Moses' training into a store.

    Args:
        source: the table, at its beginning.
        request: the settings for reading it.
        scan: settings for reading the table.

    Returns:
        The entries, their number of scores, and a tally of their counts.

    Raises:
        DataError: the table is damaged, is not sorted, has fewer scores, or an invalid score or alignment point.
    """
    check_plausible(source, scan)
    reader = EntryReader(source, scan, request.similarities, columns=lambda scores: range(min(scores, TRAINED)))
    store = TableStore(request.folder, request.numbers)

    def work(item: Item) -> tuple[RawBlock, TableRows, int, CountTally]:
        read = reader(item)
        if request.count_use:
            read.check_counts(source.name, request.count_use)
        tally = CountTally.of(read.counts, ~read.block.malformed)
        return read.raw, _table_rows(source.name, read, request), read.raw.scores, tally

    scores, lines_read, last, counts = TRAINED, 0, b"", CountTally()
    for raw, rows, read, tally in run(reader.items(), work, scan.threads):
        counts += tally
        scores = read if read >= 0 else scores
        lines_read += raw.lines
        scan.progress(raw.position, lines_read)
        if not len(rows):
            continue
        if rows.key(0) <= last:
            raise not_sorted(source.name, raw.first_entry)
        last = rows.key(len(rows.sources) - 1)
        store.append(rows)
    reader.finish(lines_read)
    if request.orientations and len(request.orientations) > lines_read:
        message = f"has {len(request.orientations):,} lines, but {source.name} has {lines_read:,}"
        raise DataError(request.orientations.name, message)
    return store, scores, counts


def _table_rows(name: str, read: ReadBlock, request: TableRequest) -> TableRows:
    raw, block = read.raw, read.block
    require_trained_scores(name, raw.scores, raw.first_entry + 1)
    good = np.flatnonzero(~block.malformed)
    starts, ends = block.line_offsets[:-1][good], block.line_offsets[1:][good]
    sizes = np.add.reduceat(~block.malformed, block.group_offsets[:-1], dtype=np.int64) if len(block) else good
    groups = prefix_sums(sizes[sizes > 0])
    heads = groups[:-1]
    sources = copy_phrases(block.text, starts[heads], block.source_ends[good][heads])
    targets = copy_phrases(block.text, block.source_ends[good] + 3, block.target_ends[good])
    if not block.ascending:
        keys = [sources[group].tobytes() for group in range(len(sources))]
        if not all(key < next_key for key, next_key in itertools.pairwise(keys)):
            raise not_sorted(name, raw.first_entry)
    points = _points(name, raw, block, good, ends)
    return TableRows(sources, groups, targets, points, _numbers(name, read, request, good))


def _points(name: str, raw: RawBlock, block: EntryBlock, good: Int64Array, ends: Int64Array) -> Ragged:
    starts = block.score_ends[good]
    points = np.empty(int((ends - starts).sum()) // 3 + 1, np.int32)
    offsets = np.zeros(len(good) + 1, np.int64)
    bad = _read_points(block.text, starts, ends, points, offsets)
    if bad >= 0:
        line = block.text[starts[bad] : ends[bad]].tobytes()
        tokens = split_words(line.rstrip(b"\r\n").split(b"|||", 2)[1])
        token = next(token for token in tokens if not is_point(token))
        raise DataError(name, point_error(token), raw.first_entry + int(good[bad]) + 1)
    return Ragged(points[: offsets[-1]].copy(), offsets)


def _numbers(name: str, read: ReadBlock, request: TableRequest, good: Int64Array) -> DoubleArray:
    """Return scores, counts, similarities and orientations; missing counts are NaN."""
    raw, block = read.raw, read.block
    scores = read.columns[good]
    wrong = np.flatnonzero(~((scores >= 0) & np.isfinite(scores)).all(axis=1))
    if len(wrong):
        line = raw.first_entry + int(good[wrong[0]]) + 1
        raise DataError(name, "a score is negative or infinite; expected a probability", line)
    counts = read.counts.values[good]
    counts[~(counts > 0)] = np.nan
    columns: Sequence[DoubleArray] = [scores, counts[:, [OF_PAIR, request.outer]]]
    if read.scores is not None:
        columns = [*columns, (1.0 + read.scores.similarities[good].astype(np.float64)) / 2.0]
    if request.orientations:
        columns = [*columns, request.orientations.of(name, raw, block)[good]]
    return np.concatenate(columns, axis=1)


PATHS, AGREEMENT = "paths", "agreement"
COLUMNS = (PATHS, AGREEMENT)
# Lower bound of scores, whose logarithm Moses computes.
_LEAST_SCORE = 1e-30


@exact_kernel
def _format(
    source_text: ByteArray,
    source_offsets: Int64Array,
    sources: Int64Array,
    target_text: ByteArray,
    target_offsets: Int64Array,
    targets: Int64Array,
    scores: DoubleArray,
    with_more: bool,
    points: Int32Array,
    point_offsets: Int64Array,
    counts: DoubleArray,
    out: ByteArray,
) -> int:
    """Write a line per entry as in a phrase table: phrases and scores, and if `with_more`, alignment and counts.

    The field of the counts is empty if a count is unknown.
    """
    position = 0
    for k in range(len(sources)):
        position = copy_bytes(source_text, source_offsets[sources[k]], source_offsets[sources[k] + 1], out, position)
        out[position] = SPACE
        position = copy_bytes(
            target_text, target_offsets[targets[k]], target_offsets[targets[k] + 1], out, position + 1
        )
        position = write_numbers(out, position, scores[k])
        if with_more:
            out[position] = SPACE
            position = write_bars(out, position + 1)
            for p in range(point_offsets[k], point_offsets[k + 1]):
                out[position] = SPACE
                position = write_integer(out, position + 1, points[p] & 0xFFFF)
                out[position] = MINUS
                position = write_integer(out, position + 1, points[p] >> 16)
            out[position] = SPACE
            position = write_bars(out, position + 1)
            if not np.isnan(counts[k].sum()):
                position = write_numbers(out, position, counts[k])
            for _ in range(2):
                out[position] = SPACE
                position = write_bars(out, position + 1)
        out[position] = LF
        position += 1
    return position


def _lines(
    batch: SourceBatch, sums: PathSums, scores: DoubleArray, points: Ragged | None, counts: DoubleArray
) -> ByteArray:
    sources, targets = batch.first.sources, batch.second.targets
    size = np.diff(sources.offsets)[sums.sources].sum() + np.diff(targets.offsets)[sums.targets].sum()
    # A point consists of a space, a minus, and two positions of up to five digits.
    room = int(size) + len(sums) * ((scores.shape[1] + 3) * (MAX_WIDTH + 1) + 20)
    room += 12 * len(points.items) if points else 0
    out = np.empty(room, np.uint8)
    no_points = np.zeros(0, np.int32), np.zeros(1, np.int64)
    used = _format(
        sources.items, sources.offsets, sums.sources, targets.items, targets.offsets, sums.targets,
        np.ascontiguousarray(scores), points is not None, *((points.items, points.offsets) if points else no_points),
        counts, out,
    )  # fmt: skip
    return out[:used]


@dataclass(frozen=True)
class PivotLines:
    """Writer of the lines of pivot tables.

    Attributes:
        columns: names of `COLUMNS` for columns after the four scores: `paths` adds the probability of the best pivot
            path and the number of paths, `agreement` the number of pivot languages with the entry.
        rules: which numbers were summed; similarities are the last columns.
    """

    columns: tuple[str, ...]
    rules: PathRules

    def names(self) -> tuple[str, ...]:
        """Return descriptions of the columns after the four scores."""
        names: list[str] = []
        if PATHS in self.columns:
            names += ["probability of the best path", "paths"]
        if AGREEMENT in self.columns:
            names += ["pivot languages"]
        if self.rules.similarities:
            names += [
                f"similarity {direction}, {statistic}"
                for statistic in ("mean", "best path")
                for direction in ("s→t", "t→s")
            ]
        return tuple(names)

    def phrase_table(self, batch: SourceBatch, paths: PathSums, points: Ragged) -> ByteArray:
        """Return lines of a phrase table: scores, the composed alignment, counts c(t) c(s) c(s,t)."""
        sums = paths.sums
        columns = [np.maximum(sums[:, :SCORES], _LEAST_SCORE)]
        if PATHS in self.columns:
            columns += [np.maximum(sums[:, BEST, None], _LEAST_SCORE), paths.path_counts[:, None].astype(np.float64)]
        if AGREEMENT in self.columns:
            columns += [paths.pivot_counts[:, None].astype(np.float64)]
        if self.rules.similarities:
            shares = sums[:, FIXED_SUMS : FIXED_SUMS + SUM_SIMILARITIES]
            similarities: FloatArray = np.clip(2.0 * shares - 1.0, -1.0, 1.0).astype(np.float32)
            columns += [scale_similarities(similarities, "exp")]
        counts = np.column_stack([sums[:, TARGET_COUNT], paths.source_counts, sums[:, PAIR_COUNT]])
        return _lines(batch, paths, np.concatenate(columns, axis=1), points, np.ascontiguousarray(counts))

    def reordering_table(self, batch: SourceBatch, sums: PathSums) -> ByteArray:
        """Return lines of a reordering table in step with the phrase table."""
        at = FIXED_SUMS + SUM_SIMILARITIES * self.rules.similarities
        return _lines(batch, sums, sums.sums[:, at : at + SUM_ORIENTATIONS], None, np.zeros((len(sums), 3)))


def check_overlap(names: tuple[str, str], pivot: PivotTables, scan: TableScan) -> None:
    """Reject tables with almost no common pivot phrases, and warn about tables with few.

    Args:
        names: names of the tables.
        pivot: the tables.
        scan: with `force`, there is only a warning.

    Raises:
        DataError: the tables have almost no common pivot phrases.
    """
    first, second = names
    coverage = pivot.links.coverage
    if coverage.mass >= LOW_MASS or not len(pivot.first):
        return
    overlap = describe_overlap(coverage, second)
    explanation = {
        FIRST: f"; are source and target of {first} swapped?",
        SECOND: f"; are source and target of {second} swapped?",
        ORDER: "; are the two tables swapped, or source and target of both?",
        CAPITALS: "; ignoring case, many more would be: both tables must write the pivot language in the same way",
        None: "; expected tables with the same tokenisation and case of the pivot language",
    }[diagnose_mismatch(pivot.first, pivot.second, coverage.share)]
    if coverage.mass < LEAST_MASS:
        scan.refuse(DataError(first, f"{overlap}{explanation}", remedy="go on"))
    else:
        scan.warn(f"{first}: {overlap}{explanation}")


def describe_overlap(coverage: PivotCoverage, second: str) -> str:
    """Describe for users how many pivot phrases of the first table are sources of the second."""
    return (
        f"{100 * coverage.share:.0f}% of its {coverage.phrases:,} target phrases ({100 * coverage.share_of_words:.0f}% "
        f"of their tokens, {100 * coverage.mass:.0f}% of their probability) are sources of {second}"
    )


DEFAULT_KEEP = 100
DEFAULT_MEMORY = 2 << 30
# The entries of a batch may take this fraction of the memory; joining them needs as much again.
_SHARE = 3
# Number of pivot paths that a thread sums at a time.
_PATHS_PER_BATCH = 1 << 18

# Similarities of the source-pivot and of the pivot-target table.
Similarities = tuple[SimilaritySource, SimilaritySource]


@dataclass(frozen=True)
class PivotRequest:
    """Settings of a pivot run.

    Attributes:
        tables: for each pivot language, a source-pivot and a pivot-target table, with the scores of Moses' training.
        output: the pivot table.
        reordering_tables: for each pivot language, the reordering tables of both tables; empty if there are none.
        reordering_out: the output reordering table.
        similarities: for each pivot language, the similarities of the entries of both tables.
        columns: additional scores, of `COLUMNS`.
        keep: largest number of entries of a source; 0 for any number.
        least: smallest probability p(t|s) of an entry of `tables`.
        least_counts: see `PathRules`.
        count_use: the feature that needs a joint count of each entry, if any.
        scan: settings for reading the tables.
        sort: whether the tables are sorted first.
        memory: bytes of memory for entries; the output does not depend on it.
        folder: folder for temporary files; None for the system's.
    """

    tables: Sequence[tuple[str, str]]
    output: str
    reordering_tables: Sequence[tuple[str, str]] = ()
    reordering_out: str | None = None
    similarities: Sequence[Similarities] = ()
    columns: tuple[str, ...] = ()
    keep: int = DEFAULT_KEEP
    least: float = 0.0
    least_counts: bool = False
    count_use: CountUse | None = None
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False
    memory: int = DEFAULT_MEMORY
    folder: str | None = None

    def __post_init__(self) -> None:
        if not self.tables:
            raise ValueError("no tables to join")
        for name, values in (("reordering tables", self.reordering_tables), ("similarities", self.similarities)):
            if values and len(values) != len(self.tables):
                raise ValueError(f"{len(self.tables)} pivot languages, but {name} for {len(values)}")
        if bool(self.reordering_tables) != (self.reordering_out is not None):
            raise ValueError("reordering_tables and reordering_out must be given together")

    @property
    def lines(self) -> PivotLines:
        """The writer of lines, with the rules for sums."""
        rules = PathRules(
            len(self.tables), self.keep, self.least, self.least_counts, bool(self.similarities),
            bool(self.reordering_tables),
        )  # fmt: skip
        return PivotLines(self.columns, rules)


@dataclass(frozen=True)
class PivotReport:
    """Results of a pivot run.

    Attributes:
        entries: written entries.
        sources: their sources.
        paths: pivot paths of the entries.
        without_alignment: entries whose best path has no alignment point.
        columns: descriptions of the scores after the first four.
        coverages: for each pivot language, coverage of the first table's pivot phrases by the second table.
    """

    entries: int
    sources: int
    paths: int
    without_alignment: int
    columns: tuple[str, ...]
    coverages: tuple[PivotCoverage, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def pivot(request: PivotRequest, watch: Watch = SILENT) -> PivotReport:
    """Write the pivot table, and the reordering table if one is requested.

    Raises:
        DataError: a table is damaged, is not sorted, has too few scores or is not in step with its reordering table;
            or, unless forced, the tables have almost no common pivot phrases, or give no entry.
        PhraseToolError: a file cannot be written.
        ValueError: an unknown column.
    """
    with contextlib.ExitStack() as outputs:
        # Files are renamed in reverse order of opening, so that the table appears last.
        table = outputs.enter_context(Output(request.output))
        reordering = outputs.enter_context(Output(request.reordering_out)) if request.reordering_out else None
        pivots = [_pivot_tables(request, number, watch) for number in range(len(request.tables))]
        return _write(request, pivots, table, reordering, watch)


def _pivot_tables(request: PivotRequest, number: int, watch: Watch) -> PivotTables:
    """Read the tables of a pivot language."""
    first, second = (_stored_table(request, number, side, watch) for side in range(2))
    links = Links(first, second, request.memory, request.folder)
    names = [display_name(path) for path in request.tables[number]]
    check_overlap((names[0], names[1]), PivotTables(first, second, links), replace(request.scan, warn=watch.warn))
    return PivotTables(first, second, links)


def _stored_table(request: PivotRequest, number: int, side: int, watch: Watch) -> TableStore:
    scan = replace(request.scan, warn=watch.warn)
    orientations = None
    output = os.path.join(request.folder, "table") if request.folder else request.output
    if request.reordering_tables:
        path = request.reordering_tables[number][side]
        opened = open_table(path, output, scan, watch, "orientations", sort=request.sort, expected=REORDERING_TABLE)
        with opened as (source, followed):
            orientations = Orientations(source, request.folder, followed)
    similarities = request.similarities[number][side] if request.similarities else None
    table_request = TableRequest(
        (OF_SOURCE, OF_TARGET)[side], similarities, orientations, request.folder, request.count_use
    )
    path = request.tables[number][side]
    with open_table(path, output, scan, watch, "read", sort=request.sort) as (source, followed):
        store, scores, counts = store_table(source, table_request, followed)
    for sentence in counts.sentences("entries through them have no counts"):
        watch.say(f"{source.name}: {sentence}")
    _report_ignored(source, scores, similarities is not None, watch)
    return store


def _report_ignored(source: Input, scores: int, similarities: bool, watch: Watch) -> None:
    more = scores - TRAINED
    if more > 0 and not similarities:
        watch.say(f"{source.name}: {more} scores after the first {TRAINED} are ignored")


def _write(
    request: PivotRequest, pivots: Sequence[PivotTables], table: Output, reordering: Output | None, watch: Watch
) -> PivotReport:
    lines = request.lines
    entries = sources = paths = without = 0
    total = sum(len(pivot.first) for pivot in pivots)
    with watch.items("join", total, "entry") as tick:
        for batch in batches(pivots, request.memory // _SHARE):
            for written in _batch(batch, lines, table, reordering, request.scan.threads):
                table.write(written.table)
                if reordering:
                    reordering.write(written.reordering)
                entries, sources, paths = entries + written.entries, sources + written.sources, paths + written.paths
                without += written.without_alignment
            tick(len(batch.first))
    if total and not entries:
        names = ", ".join(display_name(path) for pair in request.tables for path in pair)
        limit = f" over entries with p(target|source) of {request.least:g} or more" if request.least else ""
        replace(request.scan, warn=watch.warn).refuse(
            DataError(names, f"no source has a path to a target{limit}", remedy="go on")
        )
    coverages = tuple(pivot.links.coverage for pivot in pivots)
    return PivotReport(entries, sources, paths, without, lines.names(), coverages)


@dataclass(frozen=True)
class _Written:
    """Compressed lines of some sources, and their counts."""

    table: bytes
    reordering: bytes
    entries: int
    sources: int
    paths: int
    without_alignment: int


def _batch(
    batch: SourceBatch, lines: PivotLines, table: Output, reordering: Output | None, threads: int
) -> Iterator[_Written]:
    targets = number_targets(batch.second.targets)

    def work(sources: tuple[int, int]) -> _Written:
        sums = sum_paths(batch, targets, *sources, lines.rules)
        points = compose_alignments(batch, sums.best)
        text = table.encode(lines.phrase_table(batch, sums, points))
        more = reordering.encode(lines.reordering_table(batch, sums)) if reordering else b""
        distinct = int((sums.sources[1:] != sums.sources[:-1]).sum()) + (len(sums) > 0)
        return _Written(text, more, len(sums), distinct, int(sums.path_counts.sum()), empty_alignments(points))

    return run(cut_by_paths(batch, _PATHS_PER_BATCH), work, threads)
