"""Lines of tables that are joined over pivot languages: read from the tables, and written as lines of Moses' tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.counts import OF_PAIR, CountTally, CountUse
from moses_compat.lines.hashes import hash_pairs
from moses_compat.lines.insert_scores import scale_similarities
from moses_compat.lines.numbers import (
    MAX_POSITION,
    MAX_WIDTH,
    is_point,
    point_fault,
    read_position,
    write_integer,
    write_numbers,
)
from moses_compat.lines.scores import TRAINED, require_trained_scores
from moses_compat.lines.separators import content_end, find_separator, write_bars
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.opening import REORDERING_TABLE, check_plausible
from moses_compat.tables.parser import TableParser
from phrasetool.disk.disk_columns import DiskColumn
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF, MINUS, PIPE, SPACE, copy_bytes, is_blank, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, FloatArray, Int32Array, Int64Array
from phrasetool.pipeline import run
from phrasetool.pivot.batches import SourceBatch
from phrasetool.pivot.leg_rows import FIXED_NUMBERS, ORIENTATIONS, PHRASE_END, SIMILARITIES, LegRows, Ragged
from phrasetool.pivot.leg_store import LegStore
from phrasetool.pivot.ways import (
    BEST,
    FIXED_SUMS,
    PAIR_COUNT,
    SCORES,
    SUM_ORIENTATIONS,
    SUM_SIMILARITIES,
    TARGET_COUNT,
    WayRules,
    WaySums,
)
from phrasetool.pruning.composition import HashArray
from phrasetool.text_splitting import split_words


@borrowing_kernel
def _copy_phrase(text: ByteArray, start: int, end: int, out: ByteArray, place: int) -> int:
    """The tokens of text[start:end], a space behind each, and bars; return the place after them."""
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
    place = 0
    for k in range(len(starts)):
        offsets[k] = place
        place = _copy_phrase(text, starts[k], ends[k], out, place)
    offsets[len(starts)] = place


def copy_phrases(text: ByteArray, starts: Int64Array, ends: Int64Array) -> Ragged:
    """The phrases text[starts[k]:ends[k]], with one space between tokens and `PHRASE_END` behind."""
    out = np.empty(int((ends - starts).sum()) + (len(PHRASE_END) + 1) * len(starts), np.uint8)
    offsets = np.zeros(len(starts) + 1, np.int64)
    _copy_phrases(text, starts, ends, out, offsets)
    return Ragged(out[: offsets[-1]].copy(), offsets)


@exact_kernel
def _read_points(text: ByteArray, starts: Int64Array, ends: Int64Array, points: Int32Array, offsets: Int64Array) -> int:
    """Fill the points of the fields that begin behind the first bars of text[starts[k]:ends[k]].

    Returns the first line with something else there, or -1.
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
class LegRequest:
    """A leg.

    Attributes:
        outer: which of the counts is of the end that is not in the middle.
        similarities: says how alike both sides of its entries are; None without.
        orientations: of a reordering table in step with it; None without.
        folder: for files without a name.
        count_use: what needs a joint count of each entry; None if nothing does.
    """

    outer: int
    similarities: SimilaritySource | None = None
    orientations: Orientations | None = None
    folder: str | None = None
    count_use: CountUse | None = None

    @property
    def numbers(self) -> int:
        """Columns of the numbers of its entries."""
        more = SIMILARITIES * (self.similarities is not None) + ORIENTATIONS * (self.orientations is not None)
        return FIXED_NUMBERS + more


class Orientations:
    """The six probabilities of each line of a reordering table, on disk.

    Args:
        source: `wbe-msd-bidirectional-fe` or one of its kind, in the order of a phrase table; at its beginning.
        folder: for files without a name.
        scan: how it is read.

    Raises:
        DataError: the table is damaged or has other scores.
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
            return raw, block.columns, hash_pairs(raw.text, raw.line_offsets, ~block.faulty)

        for raw, values, hashes in run(replace(scan, whole_groups=False).raw_blocks(source), work, scan.threads):
            self._values.append(np.ascontiguousarray(values))
            self._hashes.append(hashes)
            scan.progress(raw.position, len(self._hashes))

    def __len__(self) -> int:
        return len(self._hashes)

    def of(self, table: str, raw: RawBlock, block: EntryBlock) -> DoubleArray:
        """The probabilities of the lines of a block, float64, shape (N, 6).

        Raises:
            DataError: a line is of another pair.
        """
        first, last = raw.first_entry, raw.first_entry + raw.lines
        hashes = self._hashes.read(first, last)
        own = hash_pairs(raw.text, raw.line_offsets, ~block.faulty)
        other = np.flatnonzero((own[: len(hashes)] != hashes) & ~block.faulty[: len(hashes)])
        if len(hashes) < raw.lines or len(other):
            line = first + (int(other[0]) if len(other) else len(hashes)) + 1
            raise DataError(self.name, f"is not in step with {table}: another pair than there, or none", line)
        return self._values.read(first, last)


def read_leg(source: Input, request: LegRequest, scan: TableScan) -> tuple[LegStore, int, CountTally]:
    """Take in a table with the four scores of Moses' training, sorted.

    Args:
        source: it, at its beginning.
        request: what is wanted of it.
        scan: how it is read.

    Returns:
        Its entries, how many scores they have, and how many have joint counts.

    Raises:
        DataError: the table is damaged, not sorted, has fewer scores, or a score or an alignment point that is none.
    """
    check_plausible(source, scan)
    reader = EntryReader(source, scan, request.similarities, columns=lambda scores: range(min(scores, TRAINED)))
    store = LegStore(request.folder, request.numbers)

    def work(item: Item) -> tuple[RawBlock, LegRows, int, CountTally]:
        found = reader(item)
        if request.count_use:
            found.check_counts(source.name, request.count_use)
        tally = CountTally.of(found.counts, ~found.block.faulty)
        return found.raw, _leg_rows(source.name, found, request), found.raw.scores, tally

    scores, done, last, counts = TRAINED, 0, b"", CountTally()
    for raw, rows, found, tally in run(reader.items(), work, scan.threads):
        counts += tally
        scores = found if found >= 0 else scores
        done += raw.lines
        scan.progress(raw.position, done)
        if not len(rows):
            continue
        if rows.key(0) <= last:
            raise _not_sorted(source.name, raw.first_entry)
        last = rows.key(len(rows.sources) - 1)
        store.append(rows)
    reader.finish(done)
    if request.orientations and len(request.orientations) > done:
        message = f"has {len(request.orientations):,} lines, but {source.name} has {done:,}"
        raise DataError(request.orientations.name, message)
    return store, scores, counts


def _leg_rows(name: str, found: ReadBlock, request: LegRequest) -> LegRows:
    raw, block = found.raw, found.block
    require_trained_scores(name, raw.scores, raw.first_entry + 1)
    good = np.flatnonzero(~block.faulty)
    starts, ends = block.line_offsets[:-1][good], block.line_offsets[1:][good]
    sizes = np.add.reduceat(~block.faulty, block.group_offsets[:-1], dtype=np.int64) if len(block) else good
    groups = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[sizes > 0])])
    heads = groups[:-1]
    sources = copy_phrases(block.text, starts[heads], block.source_ends[good][heads])
    targets = copy_phrases(block.text, block.source_ends[good] + 3, block.target_ends[good])
    if not block.ascending:
        keys = [sources[group].tobytes() for group in range(len(sources))]
        if not all(one < other for one, other in itertools.pairwise(keys)):
            raise _not_sorted(name, raw.first_entry)
    points = _points(name, raw, block, good, ends)
    return LegRows(sources, groups, targets, points, _numbers(name, found, request, good))


def _points(name: str, raw: RawBlock, block: EntryBlock, good: Int64Array, ends: Int64Array) -> Ragged:
    starts = block.score_ends[good]
    points = np.empty(int((ends - starts).sum()) // 3 + 1, np.int32)
    offsets = np.zeros(len(good) + 1, np.int64)
    bad = _read_points(block.text, starts, ends, points, offsets)
    if bad >= 0:
        line = block.text[starts[bad] : ends[bad]].tobytes()
        tokens = split_words(line.rstrip(b"\r\n").split(b"|||", 2)[1])
        token = next(token for token in tokens if not is_point(token))
        raise DataError(name, point_fault(token), raw.first_entry + int(good[bad]) + 1)
    return Ragged(points[: offsets[-1]].copy(), offsets)


def _numbers(name: str, found: ReadBlock, request: LegRequest, good: Int64Array) -> DoubleArray:
    """Scores, counts, and what else there is; counts that the table does not say are NaN."""
    raw, block = found.raw, found.block
    scores = found.columns[good]
    wrong = np.flatnonzero(~((scores >= 0) & np.isfinite(scores)).all(axis=1))
    if len(wrong):
        line = raw.first_entry + int(good[wrong[0]]) + 1
        raise DataError(name, "a score that is negative or infinite, and so no probability", line)
    counts = found.counts.values[good]
    counts[~(counts > 0)] = np.nan
    columns: Sequence[DoubleArray] = [scores, counts[:, [OF_PAIR, request.outer]]]
    if found.scores is not None:
        columns = [*columns, (1.0 + found.scores.similarities[good].astype(np.float64)) / 2.0]
    if request.orientations:
        columns = [*columns, request.orientations.of(name, raw, block)[good]]
    return np.concatenate(columns, axis=1)


def _not_sorted(name: str, first: int) -> DataError:
    return DataError(name, "the sources are not sorted bytewise from about here on", first + 1, remedy="sort it first")


WAYS, AGREEMENT = "ways", "agreement"
COLUMNS = (WAYS, AGREEMENT)
# Moses takes the logarithm of scores, and has no number for what is below this.
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
    """Write a line an entry, phrases with their bars and scores, and `with_more` what follows in a phrase table.

    Where a count is not known, the field of the counts is empty.
    """
    place = 0
    for k in range(len(sources)):
        place = copy_bytes(source_text, source_offsets[sources[k]], source_offsets[sources[k] + 1], out, place)
        out[place] = SPACE
        place = copy_bytes(target_text, target_offsets[targets[k]], target_offsets[targets[k] + 1], out, place + 1)
        place = write_numbers(out, place, scores[k])
        if with_more:
            out[place] = SPACE
            place = write_bars(out, place + 1)
            for p in range(point_offsets[k], point_offsets[k + 1]):
                out[place] = SPACE
                place = write_integer(out, place + 1, points[p] & 0xFFFF)
                out[place] = MINUS
                place = write_integer(out, place + 1, points[p] >> 16)
            out[place] = SPACE
            place = write_bars(out, place + 1)
            if not np.isnan(counts[k].sum()):
                place = write_numbers(out, place, counts[k])
            for _ in range(2):
                out[place] = SPACE
                place = write_bars(out, place + 1)
        out[place] = LF
        place += 1
    return place


def _lines(
    batch: SourceBatch, found: WaySums, scores: DoubleArray, points: Ragged | None, counts: DoubleArray
) -> ByteArray:
    sources, targets = batch.first.sources, batch.second.targets
    size = np.diff(sources.offsets)[found.sources].sum() + np.diff(targets.offsets)[found.targets].sum()
    # A point takes a space, a minus, and two positions of up to five digits.
    room = int(size) + len(found) * ((scores.shape[1] + 3) * (MAX_WIDTH + 1) + 20)
    room += 12 * len(points.items) if points else 0
    out = np.empty(room, np.uint8)
    nothing = np.zeros(0, np.int32), np.zeros(1, np.int64)
    used = _format(
        sources.items, sources.offsets, found.sources, targets.items, targets.offsets, found.targets,
        np.ascontiguousarray(scores), points is not None, *((points.items, points.offsets) if points else nothing),
        counts, out,
    )  # fmt: skip
    return out[:used]


@dataclass(frozen=True)
class PivotLines:
    """How entries are written.

    Attributes:
        columns: of `COLUMNS`, behind the four scores: of `ways` the probability of the best way, and how many there
            are, of `agreement` the number of middle languages with the entry.
        rules: what was summed; similarities come last.
    """

    columns: tuple[str, ...]
    rules: WayRules

    def names(self) -> tuple[str, ...]:
        """What the columns behind the four scores say."""
        names: list[str] = []
        if WAYS in self.columns:
            names += ["probability of the best way", "ways"]
        if AGREEMENT in self.columns:
            names += ["middle languages"]
        if self.rules.similarities:
            names += [f"similarity {way}, {of}" for of in ("mean", "best way") for way in ("s→t", "t→s")]
        return tuple(names)

    def phrase_table(self, batch: SourceBatch, found: WaySums, points: Ragged) -> ByteArray:
        """Lines of a phrase table: scores, the composed alignment, counts c(t) c(s) c(s,t)."""
        sums = found.sums
        columns = [np.maximum(sums[:, :SCORES], _LEAST_SCORE)]
        if WAYS in self.columns:
            columns += [np.maximum(sums[:, BEST, None], _LEAST_SCORE), found.ways[:, None].astype(np.float64)]
        if AGREEMENT in self.columns:
            columns += [found.middles[:, None].astype(np.float64)]
        if self.rules.similarities:
            shares = sums[:, FIXED_SUMS : FIXED_SUMS + SUM_SIMILARITIES]
            similarities: FloatArray = np.clip(2.0 * shares - 1.0, -1.0, 1.0).astype(np.float32)
            columns += [scale_similarities(similarities, "exp")]
        counts = np.column_stack([sums[:, TARGET_COUNT], found.source_counts, sums[:, PAIR_COUNT]])
        return _lines(batch, found, np.concatenate(columns, axis=1), points, np.ascontiguousarray(counts))

    def reordering_table(self, batch: SourceBatch, found: WaySums) -> ByteArray:
        """Lines of a reordering table in step with the phrase table."""
        at = FIXED_SUMS + SUM_SIMILARITIES * self.rules.similarities
        return _lines(batch, found, found.sums[:, at : at + SUM_ORIENTATIONS], None, np.zeros((len(found), 3)))
