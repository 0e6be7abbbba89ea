"""Probabilities of entries from counts: usage of each pair in forced decoding, and smoothed counts of the table itself.

As in `lines.hashes`, a pair, a source and a target are identified by a 64-bit hash of their tokens.  A distinct pair
takes 24 bytes, and so does a distinct source or target if totals are needed; three times as much while they are read.

Smoothing reads a table twice: its discounts depend on the numbers of pairs with each count, and those of Kneser-Ney
also on the number of entries of a phrase.  `count_table` counts; then `SmoothedProbabilities` returns the probabilities
of any block.  The formulas are those of `phrasetool.smt.extraction.smoothing` (Foster, Kuhn and Johnson, EMNLP 2006, as
in Moses' `consolidate`): an unpruned table gets the same numbers as from extraction with the same smoothing, unless a
discount of Kneser-Ney is negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.training_pairs import check_counts, pair_fields
from moses_compat.files.streams import Input
from moses_compat.lines.counts import OF_PAIR, CountTally, block_counts, describe_missing
from moses_compat.lines.fields import line_offsets_of
from moses_compat.lines.hashes import KeyedSums, as_key, hash_field, side_keys
from moses_compat.tables.blocks import RawBlock, TableScan, blocks
from moses_compat.tables.parser import TableParser
from moses_compat.tables.source_order import FEW_LINES
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF
from phrasetool.kernels.hashing import FNV_BASIS, NO_KEY, fnv
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, EntryBlock, FloatArray, Int32Array, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray
from phrasetool.smt.extraction.smoothing import (
    COUNT_LIMIT,
    JointCounts,
    KneserNey,
    PairStatistics,
    smoothing_of,
    translation_probabilities,
)
from phrasetool.watch import raise_or_warn

_BLOCK_BYTES = 1 << 22
_PAIR, _SOURCE, _TARGET = range(3)

# Names of the methods in options and settings.
SMOOTHINGS = ("kneser-ney", "good-turing")
# In a complete table the joint counts of a phrase add up to its own count.  Moses writes six digits of each.
_AGREEMENT = 1e-3
# Largest share of sources, and of targets, with missing entries.  Measured on Moses' table of Multi30k (1,117,535
# entries): 0 in the complete table; 0.7 % of the sources without a random 1 % of the entries, 3.1 % without 5 %; 1.7 %
# of the targets without the entries below p(e|f) = 0.01; 0.15 %, with almost no effect, without those below 0.0001;
# 70 % without those seen once.
MOST_LACKING = 0.005
# In files of at least `_SMALL_FILE` bytes, one phrase out of `_SAMPLE` is examined.
_SMALL_FILE = 1 << 22
_SAMPLE = 16
# Lower bound of smoothed probabilities, whose logarithm the decoder needs.
SMALLEST_SMOOTHED = 1e-12


@borrowing_kernel
def _hash_sides(text: ByteArray, start: int, end: int) -> tuple[np.uint64, np.uint64, np.uint64, int]:
    """Return the keys of pair, source and target of text[start:end], and the end of its target field (-1: no target).

    The key of the pair is that of `hash_pairs`.
    """
    h, i = hash_field(text, start, end, FNV_BASIS)
    if i >= end or text[i] == LF:
        return NO_KEY, NO_KEY, NO_KEY, -1
    pair, last = hash_field(text, i + 3, end, fnv(h, LF))
    target, last = hash_field(text, i + 3, end, FNV_BASIS)
    return as_key(pair), as_key(h), as_key(target), last


@exact_kernel
def _hash(text: ByteArray, line_offsets: Int64Array, keys: HashArray) -> None:
    """Compute the keys of pair, source and target of every line."""
    for line in range(len(keys)):
        start, end = line_offsets[line], line_offsets[line + 1]
        while end > start and (text[end - 1] == LF or text[end - 1] == CR):
            end -= 1
        keys[line, _PAIR], keys[line, _SOURCE], keys[line, _TARGET], _ = _hash_sides(text, start, end)


@exact_kernel
def _hash_selected(text: ByteArray, line_offsets: Int64Array, selected: Mask, keys: HashArray) -> None:
    """Store the keys of pair, source and target of each line in keys[:, line]; all are 0 if it is not selected."""
    for line in range(len(selected)):
        if not selected[line]:
            for side in range(len(keys)):
                keys[side, line] = NO_KEY
        else:
            start, end = line_offsets[line], line_offsets[line + 1]
            keys[_PAIR, line], keys[_SOURCE, line], keys[_TARGET, line], _ = _hash_sides(text, start, end)


class PairUses:
    """Counts of pairs, and their totals by source and by target; created by `read`.

    Attributes:
        path: the file, as given by the user.
    """

    def __init__(self, path: str, totals: bool = True) -> None:
        self.path = path
        self._tally = CountTally()
        self._positive = False
        self._sums = [KeyedSums(np.float64) for _ in range(3 if totals else 1)]

    @classmethod
    def read(cls, path: str, totals: bool = True, say: Callable[[str], None] = lambda message: None) -> PairUses:
        """Read lines `source ||| target[ ||| count]` or a phrase table, compressed or not.

        Counts of duplicate pairs are added.

        Args:
            path: the file.
            totals: whether the totals of sources and targets are also needed.
            say: receives a message if counts were derived.

        Raises:
            DataError: the file is damaged or empty, a line has fewer than two fields, a count is not a number of at
                least 0, every count is 0, or a table has no joint count.
        """
        counted = cls(path, totals)
        with Input(path) as source:
            lines = 0
            for text in blocks(source, _BLOCK_BYTES):
                lines += counted._add(text, source.name, lines)
            if not lines:
                raise DataError(source.name, "no phrase pair, the file is empty")
            if not counted._positive:
                raise DataError(source.name, "the count of every pair is 0")
        for sums in counted._sums:
            sums.shrink()
        for sentence in counted._tally.sentences(""):
            say(f"{path}: {sentence}")
        return counted

    def _add(self, text: ByteArray, name: str, before: int) -> int:
        """Add the pairs of a text that follows `before` lines of its file; return the number of lines of the text."""
        fields = pair_fields(text)
        counts = fields.counts
        pairless = np.flatnonzero(fields.places[:, 1] < 0)
        if len(pairless):
            raise DataError(name, "expected `source ||| target`, found no |||", before + int(pairless[0]) + 1)
        check_counts(name, fields, before)
        missing = np.flatnonzero(np.isnan(counts))
        if len(missing):
            line = before + int(missing[0]) + 1
            message = "the pair has no count; expected `source ||| target[ ||| count]`, or a table with joint counts"
            raise DataError(name, message, line)
        self._tally += fields.tally
        self._positive = self._positive or bool(counts.any())
        keys = np.empty((len(counts), 3), np.uint64)
        _hash(text, line_offsets_of(text), keys)
        for column, sums in zip(keys.T, self._sums, strict=False):
            sums.add(np.ascontiguousarray(column), counts)
        return len(counts)

    def look_up(self, text: ByteArray, line_offsets: Int64Array, selected: Mask) -> FloatArray:
        """Return the counts of the pairs in lines of a table; may be called by several threads at once.

        Args:
            text: uint8, shape (B,), lines of `source ||| target[ ||| ...]`.
            line_offsets: int64, shape (N + 1,), the start of each line, and the end of the last.
            selected: bool, shape (N,), the lines to look up.

        Returns:
            float32, shape (N, 3): the count of the pair, the total of its source, the total of its target.  A number is
            0 if it is unknown, if its total was not read, or if the line is not selected or has no pair.
        """
        if text.dtype != np.uint8 or line_offsets.dtype != np.int64 or selected.dtype != np.bool_:
            raise ValueError("expected uint8 text, int64 offsets and a mask")
        if len(line_offsets) != len(selected) + 1 or line_offsets[-1] > len(text):
            raise ValueError(f"{len(line_offsets)} offsets do not fit {len(selected)} lines in {len(text)} bytes")
        keys = np.empty((3, len(selected)), np.uint64)
        _hash_selected(
            np.ascontiguousarray(text), np.ascontiguousarray(line_offsets), np.ascontiguousarray(selected), keys
        )
        numbers = np.zeros((len(selected), 3), np.float32)
        for side, sums in enumerate(self._sums):
            numbers[:, side] = sums.look_up(keys[side])
        return numbers


@dataclass(frozen=True)
class TableCounts:
    """The counts of a whole table that smoothing needs.

    Attributes:
        statistics: numbers of entries, and of pairs seen once, twice, ...; fractional counts are rounded up.
        sources, targets: numbers of entries of each phrase; duplicate pairs are counted twice.
        lacking: shares of the sources and of the targets whose count exceeds the sum of their joint counts.
    """

    statistics: PairStatistics
    sources: KeyedSums[np.int32]
    targets: KeyedSums[np.int32]
    lacking: tuple[float, float]


def count_table(source: Input, scan: TableScan, remedy: str | None = None) -> TableCounts:
    """Count the entries of a whole table, as smoothing requires.

    This takes 18 bytes per distinct source and per distinct target.  The result does not depend on the order of the
    lines, on threads, or on the size of blocks.

    Args:
        source: the table, read from its beginning.
        scan: settings for reading the table; unless `on_error` is `fail`, malformed lines are skipped.
        remedy: remedy for an entry without counts, see `PhraseToolError`.

    Raises:
        DataError: the table is damaged, or has a malformed line and `scan.on_error` is `fail`; or an entry does not
            have `c(t) c(s) c(s,t)`.
    """

    sampled = np.uint64(0 if source.size() < _SMALL_FILE else _SAMPLE - 1)

    def work(raw: RawBlock) -> tuple[RawBlock, PairStatistics, list[tuple[HashArray, Int32Array]], list[_SideCounts]]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.malformed, faults)
        rows = np.flatnonzero(~block.malformed)
        # Counts are rounded up to integers; large ones need not be exact.
        entry_counts = _counts(source.name, block, rows, remedy)
        joint = np.minimum(np.ceil(entry_counts[:, 2]), COUNT_LIMIT + 1).astype(np.int64)
        sides = side_keys(block.text, block.line_offsets, rows)
        # c(s) is the second count, c(t) the first.
        samples = [
            _SideCounts.of(sides[side], entry_counts[:, 1 - side], entry_counts[:, 2], sampled) for side in (0, 1)
        ]
        return raw, PairStatistics.of(joint), [_distinct(keys) for keys in sides], samples

    statistics = PairStatistics.of(np.zeros(0, np.int64))
    counted = KeyedSums(np.int32), KeyedSums(np.int32)
    totals = _Totals(), _Totals()
    for raw, part, sides, samples in run(scan.raw_blocks(source), work, scan.threads):
        statistics += part
        for counts, (keys, numbers) in zip(counted, sides, strict=True):
            counts.add(keys, numbers)
        for total, sample in zip(totals, samples, strict=True):
            total.add(sample)
        scan.progress(raw.position, raw.first_entry + raw.lines)
    for counts in counted:
        counts.shrink()
    lacking = totals[0].lacking(counted[0]), totals[1].lacking(counted[1])
    return TableCounts(statistics, *counted, lacking)


@dataclass(frozen=True)
class _SideCounts:
    """Keys of one side of some entries, with the counts of that side and the joint counts."""

    keys: HashArray
    own: npt.NDArray[np.float64]
    joint: npt.NDArray[np.float64]

    @classmethod
    def of(cls, keys: HashArray, own: FloatArray, joint: FloatArray, sampled: np.uint64) -> _SideCounts:
        chosen = (keys & sampled) == 0
        return cls(keys[chosen], own[chosen].astype(np.float64), joint[chosen].astype(np.float64))


class _Totals:
    """Sums over the entries of each phrase of a sample."""

    def __init__(self) -> None:
        self._own, self._joint = KeyedSums(np.float64), KeyedSums(np.float64)

    def add(self, seen: _SideCounts) -> None:
        self._own.add(seen.keys, seen.own)
        self._joint.add(seen.keys, seen.joint)

    def lacking(self, entries: KeyedSums[np.int32]) -> float:
        """Return the share of the phrases whose count exceeds the sum of their joint counts."""
        keys = self._own.slots[self._own.slots != NO_KEY]
        # Every entry of a phrase has the count of the phrase.
        own = self._own.look_up(keys) / entries.look_up(keys)
        return float((own > self._joint.look_up(keys) * (1 + _AGREEMENT)).mean()) if len(keys) else 0.0


def check_whole(name: str, counts: TableCounts, scan: TableScan) -> None:
    """Reject a pruned table, from which probabilities cannot be estimated.

    Args:
        name: name of the table in messages.
        counts: counts of the table.
        scan: settings for reading; with `force`, a pruned table only causes a warning.

    Raises:
        DataError: the table has more than `FEW_LINES` entries, and more than `MOST_LACKING` of its sources or of its
            targets have a count that exceeds the sum of their joint counts.
    """
    sides = [("sources", counts.lacking[0]), ("targets", counts.lacking[1])]
    side, share = max(sides, key=lambda item: item[1])
    if share <= MOST_LACKING:
        return
    message = (
        f"looks pruned: {share:.1%} of the {side} were seen more often than all their entries together; "
        "expected a whole table, from whose counts probabilities can be estimated; annotate it before it is pruned"
    )
    # A table of a few lines is an example, or written by hand.
    few = counts.statistics.pairs <= FEW_LINES
    raise_or_warn(DataError(name, message, remedy="leave out smoothing or go on"), scan.force or few, scan.warn)


def _distinct(keys: HashArray) -> tuple[HashArray, Int32Array]:
    """Return the distinct keys, ascending, and the number of entries of each."""
    different, numbers = np.unique(keys, return_counts=True)
    return different, numbers.astype(np.int32)


def _counts(name: str, block: EntryBlock, rows: Int64Array, remedy: str | None = None) -> FloatArray:
    """Return c(t), c(s) and c(s,t) of the entries `rows`, float32, shape (R, 3).

    Raises:
        DataError: an entry has no counts, or invalid ones.
    """
    # Derived counts are not used: derived from smoothed probabilities, they would be smoothed already.
    read_counts = block_counts(block)
    read_counts.values[read_counts.derived, OF_PAIR] = np.nan
    counts = read_counts.values[rows].astype(np.float32)
    missing = np.isnan(counts).any(axis=1)
    if missing.any():
        row = int(rows[int(np.argmax(missing))])
        raise DataError(name, describe_missing(block, row, "smoothing"), block.first_entry + row + 1, remedy=remedy)
    return counts


class SmoothedProbabilities:
    """p(target | source) and p(source | target) of a table's entries; may be called by several threads.

    Args:
        name: name of the table in messages.
        counts: counts of the whole table.
        method: one of `SMOOTHINGS`.

    Raises:
        ValueError: the method is unknown.
    """

    def __init__(self, name: str, counts: TableCounts, method: str) -> None:
        if method not in SMOOTHINGS:
            raise ValueError(f"unknown smoothing {method!r}; expected one of {', '.join(SMOOTHINGS)}")
        self._name = name
        self._table = counts
        self._smoothing = smoothing_of(method, counts.statistics)
        if isinstance(self._smoothing, KneserNey):
            # Without rare pairs, discounts, and thus probabilities, can become negative.
            np.maximum(self._smoothing.discounts, 0, out=self._smoothing.discounts)

    def __call__(self, block: EntryBlock) -> npt.NDArray[np.float64]:
        """Return the probabilities of N entries, shape (N, 2), above 0 and finite; 1 for a malformed line.

        Raises:
            DataError: an entry was not counted before, or does not have `c(t) c(s) c(s,t)`.
        """
        rows = np.flatnonzero(~block.malformed)
        target, source, joint = np.ascontiguousarray(_counts(self._name, block, rows).T)
        sources, targets = side_keys(block.text, block.line_offsets, rows)
        distinct = [self._table.sources.look_up(sources), self._table.targets.look_up(targets)]
        unknown = np.flatnonzero((distinct[0] == 0) | (distinct[1] == 0))
        if len(unknown):
            line = block.first_entry + int(rows[unknown[0]]) + 1
            raise DataError(self._name, "the table changed while it was read", line)
        pairs = JointCounts(joint, source, target, *distinct)
        probabilities = np.ones((len(block), 2))
        inverse, direct = translation_probabilities(pairs, self._smoothing)
        probabilities[rows] = np.maximum(np.stack([direct, inverse], axis=1), SMALLEST_SMOOTHED)
        return probabilities
