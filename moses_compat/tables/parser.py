"""Parsing of phrase-table text to `EntryBlock`, in kernels that never use a Python object.

A line is `source ||| target ||| scores [||| alignment [||| counts [||| sparse [||| properties]]]]`; any number of
fields from three up is accepted.  As in Moses' text loader, every occurrence of the three bytes `|||` separates fields,
and runs of spaces and tabs separate tokens.  Nothing is decoded, re-encoded or normalised: an `EntryBlock` keeps the
bytes of its lines, and output is made of these bytes.

A source group is a run of consecutive lines with the same source tokens.  A line without any `|||` belongs to the
surrounding group, so that a stray line never splits a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from moses_compat.lines.fields import content_end, find_separator, line_offsets_of, same_tokens
from moses_compat.lines.numbers import (
    FEW_FIELDS,
    IS_NAN,
    NOT_A_NUMBER,
    OK,
    WRONG_COUNT,
    read_columns,
    scan_scores,
)
from phrasetool.kernels.bytes import TAB, common_prefix, is_blank, skip_blanks, token_end
from phrasetool.kernels.hashing import fnv_bytes_32
from phrasetool.kernels.jit import borrowing_kernel, inner_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int32Array, Int64Array, Phrases
from phrasetool.vocabulary import Vocabulary, is_label, look_up_next


class LineScan(NamedTuple):
    """Positions of the fields of a block of lines; all arrays int64 of shape (N,) unless stated.

    Attributes:
        line_offsets: shape (N + 1,).
        source_ends, target_ends: positions of the first two `|||`, -1 where missing.
        score_ends: the byte after the last score.
        faults: uint8, one of OK, FEW_FIELDS, NOT_A_NUMBER, WRONG_COUNT, IS_NAN.
        item_counts: number of scores (of fields, for FEW_FIELDS).
        columns: float64, shape (N, C), the requested score columns.
        group_offsets: shape (G + 1,).
        ascending: whether the sources of the groups, including bars, ascend bytewise, and are spelt so that none can
            occur again later (see `follow`).
    """

    line_offsets: Int64Array
    source_ends: Int64Array
    target_ends: Int64Array
    score_ends: Int64Array
    faults: npt.NDArray[np.uint8]
    item_counts: Int64Array
    columns: npt.NDArray[np.float64]
    group_offsets: Int64Array
    ascending: bool


@inner_kernel
def follow(text: ByteArray, start: int, end: int, before: int, before_end: int) -> tuple[bool, bool]:
    """Compare the source text[start:end] with its predecessor text[before:before_end]; `|||` follows both.

    Returns whether their tokens are the same, and whether they may be neighbours in a table in which all sources,
    including bars, ascend bytewise and none occurs again later.  Other sources could lie between two spellings of one
    source: in that case, two neighbours among them first differ at a tab, or at a blank that is the first byte or
    follows another blank; or the bars of one do not follow a blank.
    """
    spaced = end > start and is_blank(text[end - 1])
    shorter = min(end - start, before_end - before) + 3
    k = common_prefix(text, start, text, before, shorter)
    if k == shorter:
        return True, spaced
    a, b = text[start + k], text[before + k]
    if not is_blank(a) and not is_blank(b):
        return False, spaced and a > b
    regular = a != TAB and b != TAB and k > 0 and not is_blank(text[start + k - 1])
    return same_tokens(text, start, end, before, before_end), spaced and regular and a > b


@borrowing_kernel
def _scan(
    text: ByteArray, expected: int, wanted_columns: Int64Array, scan: LineScan, result: Int64Array
) -> tuple[int, bool]:
    """Fill the arrays of a scan except line_offsets, one row per line; return the number of groups, and `ascending`.

    `result` is a buffer for the result of `scan_scores`.
    """
    line_offsets, group_offsets = scan.line_offsets, scan.group_offsets
    groups, ascending = 0, True
    group_start, group_end = np.int64(-1), np.int64(-1)
    for line in range(len(line_offsets) - 1):
        start = line_offsets[line]
        end = content_end(text, start, line_offsets[line + 1])
        first = find_separator(text, start, end)
        second = find_separator(text, first + 3, end) if first >= 0 else -1
        scan.source_ends[line] = first
        scan.target_ends[line] = second
        if second < 0:
            scan.faults[line] = FEW_FIELDS
            scan.item_counts[line] = 1 if first < 0 else 2
            scan.score_ends[line] = end
        else:
            scan_scores(text, second + 3, end, expected, result)
            scan.faults[line] = result[0]
            scan.item_counts[line] = result[1]
            scan.score_ends[line] = result[2]
            if len(wanted_columns) > 0 and result[0] == OK:
                read_columns(text, second + 3, result[2], wanted_columns, scan.columns, line)
        same, up = True, True
        if first >= 0:
            # Lines without a source at the beginning belong to the first group with a source.
            if group_start < 0:
                group_start, group_end = start, first
            same, up = follow(text, start, first, group_start, group_end)
            ascending = ascending and up
            group_start, group_end = start, first
        if line == 0 or not same:
            group_offsets[groups] = line
            groups += 1
    group_offsets[groups] = len(line_offsets) - 1
    return groups, ascending


@borrowing_kernel
def _tokenise(
    text: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    words: ByteArray,
    word_offsets: Int64Array,
    slots: Int32Array,
    offsets: Int64Array,
    ids: Int32Array,
    buffer: ByteArray,
) -> None:
    """Convert the fields text[starts[i]:ends[i]] to word ids, without labels such as `[X]`."""
    count = 0
    offsets[0] = 0
    for field_ in range(len(starts)):
        end = ends[field_]
        i = skip_blanks(text, starts[field_], end)
        while i < end:
            word, i = look_up_next(text, i, end, words, word_offsets, slots, buffer)
            if word >= 0:
                ids[count] = word
                count += 1
            i = skip_blanks(text, i, end)
        offsets[field_ + 1] = count


@borrowing_kernel
def _count_words(text: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array) -> None:
    for field_ in range(len(starts)):
        count = 0
        i = starts[field_]
        while i < ends[field_]:
            first = i
            i = token_end(text, i, ends[field_])
            if i > first and not is_label(text, first, i):
                count += 1
            i += 1
        counts[field_] = count


@borrowing_kernel
def _fingerprint_pairs(text: ByteArray, starts: Int64Array, ends: Int64Array, hashes: npt.NDArray[np.uint32]) -> None:
    """Hash source and target as written, with FNV-1a."""
    for line in range(len(hashes)):
        hashes[line] = fnv_bytes_32(text, starts[line], ends[line])


def tokenise(text: ByteArray, starts: Int64Array, ends: Int64Array, vocabulary: Vocabulary) -> Phrases:
    """Return the phrases at text[starts[i]:ends[i]] as word ids.

    Args:
        text: uint8, shape (B,).
        starts, ends: int64, shape (N,).
        vocabulary: vocabulary of their language.
    """
    offsets = np.zeros(len(starts) + 1, np.int64)
    widths = ends - starts
    ids = np.empty(int((widths // 2 + 1).sum()), np.int32)
    buffer = np.empty(max(int(widths.max(initial=0)), 1), np.uint8)
    _tokenise(text, starts, ends, *vocabulary.tables, offsets, ids, buffer)
    return Phrases(offsets, ids[: offsets[-1]].copy())


@dataclass(frozen=True)
class Fault:
    """A line that cannot be read as a table entry.

    Attributes:
        entry: 0-based number of the line in its table.
        message: description of the fault.
    """

    entry: int
    message: str


class _Faults(Sequence[Fault]):
    """The faults of a scan, created on access, so that a million empty lines do not need a million messages."""

    def __init__(self, scan: LineScan, first_entry: int, scores: int) -> None:
        self._scan, self._first, self._lines = scan, first_entry, np.flatnonzero(scan.faults)
        self._messages = {
            FEW_FIELDS: "expected at least 3 fields separated by |||, found {}",
            NOT_A_NUMBER: "a score is not a number",
            WRONG_COUNT: f"expected {max(scores, 1)} scores as on the lines before, found {{}}",
            IS_NAN: "a score is NaN, which Moses cannot load",
        }

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, place: int) -> Fault: ...

    @overload
    def __getitem__(self, place: slice) -> list[Fault]: ...

    def __getitem__(self, place: int | slice) -> Fault | list[Fault]:
        if isinstance(place, slice):
            return [self._fault(int(line)) for line in self._lines[place]]
        return self._fault(int(self._lines[place]))

    def _fault(self, line: int) -> Fault:
        message = self._messages[int(self._scan.faults[line])].format(self._scan.item_counts[line])
        return Fault(self._first + line, message)


def scan_lines(
    text: ByteArray, scores: int = -1, columns: Sequence[int] = (), line_offsets: Int64Array | None = None
) -> LineScan:
    """Find lines, fields, scores and source groups.

    Args:
        text: uint8, whole lines; the last may lack its line feed.
        scores: number of scores that each line must have; -1 for any number.
        columns: 0-based score columns whose values are requested.
        line_offsets: int64, shape (N + 1,), the start of each line and the end of the last, if known.
    """
    offsets = line_offsets_of(text) if line_offsets is None else line_offsets
    lines = len(offsets) - 1
    source_ends, target_ends, score_ends, item_counts = (np.empty(lines, np.int64) for _ in range(4))
    faults, values = np.zeros(lines, np.uint8), np.zeros((lines, len(columns)), np.float64)
    groups = np.zeros(lines + 1, np.int64)
    scan = LineScan(offsets, source_ends, target_ends, score_ends, faults, item_counts, values, groups, False)
    count, ascending = _scan(text, scores, np.asarray(columns, np.int64), scan, np.empty(3, np.int64))
    return scan._replace(group_offsets=groups[: count + 1], ascending=ascending)


def count_scores(text: ByteArray) -> int:
    """Return the number of scores of the first valid line, which all lines must have; -1 if there is none."""
    scan = scan_lines(text)
    good = np.flatnonzero(scan.faults == OK)
    return int(scan.item_counts[good[0]]) if len(good) else -1


@dataclass(frozen=True)
class TableParser:
    """Parser that converts the text of a block to an `EntryBlock` and its faults.

    Args:
        source, target: the vocabularies; without them, phrases have no words (for tables that are only copied or
            counted).
        scores: number of scores per entry.
        columns: 0-based score columns to read.
        fingerprints: whether to fingerprint every pair.
    """

    source: Vocabulary | None = None
    target: Vocabulary | None = None
    scores: int = -1
    columns: Sequence[int] = field(default_factory=tuple)
    fingerprints: bool = False

    def __call__(
        self, first_entry: int, text: ByteArray, line_offsets: Int64Array | None = None
    ) -> tuple[EntryBlock, Sequence[Fault]]:
        """Parse the block `text`, whose first line is number `first_entry` of its table."""
        scan = scan_lines(text, self.scores, self.columns, line_offsets)
        starts = scan.line_offsets[:-1]
        source_ends = np.maximum(scan.source_ends, starts)
        target_starts = np.minimum(source_ends + 3, scan.line_offsets[1:])
        target_ends = np.maximum(scan.target_ends, target_starts)
        heads = self._group_heads(scan)
        source_lengths = np.empty(len(heads), np.int64)
        _count_words(text, starts[heads], source_ends[heads], source_lengths)
        block = EntryBlock(
            first_entry,
            text,
            scan.line_offsets,
            scan.source_ends,
            scan.target_ends,
            scan.score_ends,
            scan.group_offsets,
            source_lengths,
            _phrases(text, starts[heads], source_ends[heads], self.source),
            _phrases(text, target_starts, target_ends, self.target),
            scan.faults != OK,
            scan.columns,
            ascending=scan.ascending,
        )
        if self.fingerprints:
            block.fingerprints = np.empty(len(starts), np.uint32)
            _fingerprint_pairs(text, starts, target_ends, block.fingerprints)
        return block, self.faults(scan, first_entry)

    @staticmethod
    def _group_heads(scan: LineScan) -> Int64Array:
        """Return, for each group, the first line that has a source field."""
        heads = scan.group_offsets[:-1].copy()
        if len(heads) and scan.source_ends[0] < 0:
            keyed = np.flatnonzero(scan.source_ends[: scan.group_offsets[1]] >= 0)
            heads[0] = keyed[0] if len(keyed) else 0
        return heads

    def faults(self, scan: LineScan, first_entry: int) -> Sequence[Fault]:
        """Return the faults of a scan; `first_entry` is the number of its first line in the table."""
        return _Faults(scan, first_entry, self.scores)


def _phrases(text: ByteArray, starts: Int64Array, ends: Int64Array, vocabulary: Vocabulary | None) -> Phrases:
    if vocabulary is None:
        return Phrases(np.zeros(len(starts) + 1, np.int64), np.zeros(0, np.int32))
    return tokenise(text, starts, ends, vocabulary)
