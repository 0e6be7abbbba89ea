"""A table with new sources among its own, and with columns that its own entries get, too."""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.augmenting.new_lines import BARS, TEXT, LineForm, NewLines
from moses_compat.lines.insert_scores import annotated_lines
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.phrases import EntryBlock, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.text_splitting import lines_with_ends


def write_augmented(
    source: Input, output: Output, new: Iterable[str], new_lines: NewLines, columns: int, scan: TableScan
) -> int:
    """Write a sorted table with new entries in their places.

    Args:
        source: the table, at its beginning.
        output: where it goes.
        new: words; those that are sources of the table get more entries.
        new_lines: makes their lines.
        columns: scores of 1 that all lines of the table get behind theirs.
        scan: how it is read.

    Returns:
        How many lines the table had.

    Raises:
        DataError: the table is damaged, has a faulty line and the scan says `fail`, or is not sorted.
    """
    words = sorted((word.encode(*TEXT) for word in new), key=_key)
    keys = [_key(word) for word in words]

    def lines(first: int, last: int, form: LineForm) -> list[bytes]:
        return [new_lines(word, form) for word in words[first:last]]

    def work(raw: RawBlock) -> tuple[RawBlock, _Piece]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        passes = scan.passes(source.name, block.faulty, faults)
        groups, form = _Groups(block), LineForm(raw.scores, _fields(raw))
        if not groups.ascending:
            raise _not_sorted(source.name, raw.first_entry)
        text = annotated_lines(block, np.ones((len(block), columns)), passes).tobytes()
        first, last = bisect.bisect_left(keys, groups.first), bisect.bisect_right(keys, groups.last)
        offsets = _offsets(block, passes, len(text))
        if text and not text.endswith(b"\n"):
            # Another line may follow the last one.
            text += b"\n"
            offsets[-1] += 1
        parts, at = list[bytes](), 0
        for key, more in zip(keys[first:last], lines(first, last, form), strict=True):
            begin, end = (int(offsets[row]) for row in groups.rows(key))
            parts += [text[at:begin], _merged(text[begin:end], more)]
            at = end
        return raw, _Piece(groups.first, groups.last, first, last, form, output.encode(b"".join([*parts, text[at:]])))

    done, total = 0, 0
    piece: _Piece | None = None
    for raw, found in run(scan.raw_blocks(source), work, scan.threads):
        if piece is not None and found.first_key <= piece.last_key:
            raise _not_sorted(source.name, raw.first_entry)
        piece = found
        output.write(output.encode(b"".join(lines(done, piece.first, piece.form))))
        output.write(piece.data)
        done = piece.last
        total += raw.lines
        scan.progress(raw.position, total)
    if piece is not None:
        output.write(output.encode(b"".join(lines(done, len(words), piece.form))))
    return total


@dataclass(frozen=True)
class _Piece:
    """A block as it is written: its first and last source, and which new ones stand among its own."""

    first_key: bytes
    last_key: bytes
    first: int
    last: int
    form: LineForm
    data: bytes


class _Groups:
    """The sources of a block, as lines begin with them."""

    def __init__(self, block: EntryBlock) -> None:
        self._block = block
        self._count = len(block.group_offsets) - 1
        self.first, self.last = self._key(0), self._key(self._count - 1)

    @property
    def ascending(self) -> bool:
        """Whether each stands behind the one before."""
        if self._block.ascending:
            return True
        keys = [self._key(group) for group in range(self._count)]
        return all(one < other for one, other in itertools.pairwise(keys))

    def rows(self, key: bytes) -> tuple[int, int]:
        """The lines of a source, from and up to; where it would stand if it has none."""
        group = bisect.bisect_left(range(self._count), key, key=self._key)
        there = group < self._count and self._key(group) == key
        return int(self._block.group_offsets[group]), int(self._block.group_offsets[group + there])

    def _key(self, group: int) -> bytes:
        row = self._block.group_offsets[group]
        start, end = self._block.line_offsets[row], self._block.source_ends[row]
        return _key(self._block.text[start : end if end >= 0 else start].tobytes().strip(b" \t"))


def _merged(own: bytes, more: bytes) -> bytes:
    """The lines of a source, which stay in their order, with others, which are sorted, in their places."""
    if not own:
        return more
    return b"".join(heapq.merge(lines_with_ends(own), lines_with_ends(more)))


def _offsets(block: EntryBlock, keep: Mask, size: int) -> Int64Array:
    """Where each kept line begins in the text of so many bytes; lines that are entries are all longer by the same."""
    lengths = np.where(keep, np.diff(block.line_offsets), 0)
    longer = keep & ~block.faulty
    more = (size - int(lengths.sum())) // max(1, int(longer.sum()))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + more * longer)])


def _key(word: bytes) -> bytes:
    """What decides where the lines of a source stand."""
    return word + BARS


def _fields(raw: RawBlock) -> int:
    return raw.text[: raw.line_offsets[1]].tobytes().count(b"|||") + 1


def _not_sorted(name: str, first: int) -> DataError:
    return DataError(name, "the sources are not sorted bytewise from about here on", first + 1, remedy="sort it first")
