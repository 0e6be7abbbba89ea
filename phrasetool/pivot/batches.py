"""Batches of sources that fit into memory together with the groups of pivot-target entries that they lead to.

The first table is a source-pivot table, the second a pivot-target table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array
from phrasetool.pivot.links import NO_LINK, Links
from phrasetool.pivot.tables import Ragged, TableRows, TableStore, bytes_of_groups


@dataclass(frozen=True)
class PivotTables:
    """A pivot language.

    Attributes:
        first: the source-pivot table.
        second: the pivot-target table.
        links: links from entries of the first to groups of the second.
    """

    first: TableStore
    second: TableStore
    links: Links


@dataclass(frozen=True)
class SourceBatch:
    """Sources with all their pivot paths.

    Attributes:
        first: the N source-pivot entries of the sources, grouped by source, in the order of the pivot languages.
        pivot_numbers: int32, shape (N,), index of the pivot language of each entry.
        second_rows: int64, shape (N, 2), first and last row (exclusive) of `second` that each entry leads to.
        second: groups of pivot-target entries of all pivot languages.
    """

    first: TableRows
    pivot_numbers: Int32Array
    second_rows: Int64Array
    second: TableRows


@dataclass(frozen=True)
class _Part:
    """Consecutive sources of a source-pivot table: entries, the group that each leads to, and its size in bytes."""

    rows: TableRows
    groups: Int64Array
    sizes: Int64Array

    def part(self, first: int, last: int) -> _Part:
        a, b = int(self.rows.groups[first]), int(self.rows.groups[last])
        return _Part(self.rows.part(first, last), self.groups[a:b], self.sizes[a:b])

    def sources_until(self, key: bytes) -> int:
        """Return the number of sources that are not greater than the key."""
        low, high = 0, len(self.rows.sources)
        while low < high:
            middle = (low + high) // 2
            if self.rows.key(middle) <= key:
                low = middle + 1
            else:
                high = middle
        return low


# Parts of all pivot languages for the same range of sources; None where a pivot language has none of the sources.
_Parts = tuple[_Part | None, ...]


def batches(pivots: Sequence[PivotTables], memory: int) -> Iterator[SourceBatch]:
    """Yield all sources of the source-pivot tables in batches, in order.

    Args:
        pivots: at least one pivot language.
        memory: maximum number of bytes per batch; a source that needs more is a separate batch.
    """
    pending: list[_Parts] = []
    pending_groups: list[_SecondGroups] = [_SecondGroups() for _ in pivots]
    for parts in _in_step([_parts(pivot) for pivot in pivots]):
        for piece in _halved(parts, memory):
            more = [before.with_part(part) for before, part in zip(pending_groups, piece, strict=True)]
            if pending and sum(loads.size for loads in more) > memory:
                yield from _batch(pivots, pending, pending_groups)
                pending, more = [], [_SecondGroups().with_part(part) for part in piece]
            pending.append(piece)
            pending_groups = more
    yield from _batch(pivots, pending, pending_groups)


@dataclass(frozen=True)
class _SecondGroups:
    """Groups of pivot-target entries, ascending, and the size in bytes of them and of the entries that lead there."""

    groups: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    size: int = 0

    def with_part(self, part: _Part | None) -> _SecondGroups:
        if part is None:
            return self
        groups, first = np.unique(part.groups, return_index=True)
        first = first[groups != NO_LINK]
        groups = groups[groups != NO_LINK]
        positions = np.searchsorted(self.groups, groups)
        new = np.ones(len(groups), np.bool_)
        inside = positions < len(self.groups)
        new[inside] = self.groups[positions[inside]] != groups[inside]
        size = self.size + int(part.sizes[first[new]].sum()) + int(bytes_of_groups(part.rows).sum())
        # The stable sort merges sorted runs in linear time.
        return _SecondGroups(np.sort(np.concatenate([self.groups, groups[new]]), kind="stable"), size)


def _parts(pivot: PivotTables) -> Iterator[_Part]:
    row = 0
    for rows in pivot.first.blocks():
        yield _Part(rows, *pivot.links.read(row, row + len(rows)))
        row += len(rows)


def _in_step(streams: Sequence[Iterator[_Part]]) -> Iterator[_Parts]:
    """Yield parts of all streams that end at the same source."""
    current = [next(stream, None) for stream in streams]
    while present := [part for part in current if part is not None]:
        cut = min(part.rows.key(len(part.rows.sources) - 1) for part in present)
        heads: list[_Part | None] = []
        for number, part in enumerate(current):
            if part is None:
                heads.append(None)
                continue
            last = len(part.rows.sources)
            count = part.sources_until(cut)
            heads.append(part.part(0, count) if count else None)
            current[number] = part.part(count, last) if count < last else next(streams[number], None)
        yield tuple(heads)


def _halved(parts: _Parts, memory: int) -> Iterator[_Parts]:
    """Yield parts that fit into memory or consist of a single source."""
    present = [part for part in parts if part is not None]
    largest = max(present, key=lambda part: len(part.rows.sources))
    sources = len(largest.rows.sources)
    if sources == 1 or sum(_SecondGroups().with_part(part).size for part in present) <= memory:
        yield parts
        return
    key = largest.rows.key(sources // 2 - 1)
    ends = [part.sources_until(key) if part else 0 for part in parts]
    for half in (
        tuple(part.part(0, end) if part and end else None for part, end in zip(parts, ends, strict=True)),
        tuple(
            part.part(end, len(part.rows.sources)) if part and end < len(part.rows.sources) else None
            for part, end in zip(parts, ends, strict=True)
        ),
    ):
        yield from _halved(half, memory)


def _batch(
    pivots: Sequence[PivotTables], pending: Sequence[_Parts], second_groups: Sequence[_SecondGroups]
) -> Iterator[SourceBatch]:
    """Yield the batch of the parts; nothing if no entry leads to a group."""
    loaded: list[TableRows] = []
    firsts: list[TableRows] = []
    row_ranges: list[Int64Array] = []
    numbers: list[int] = []
    row = 0
    for number, (pivot, needed) in enumerate(zip(pivots, second_groups, strict=True)):
        parts = [piece[number] for piece in pending]
        # Entries that lead to no group still contribute to the count of their source.
        present = [part for part in parts if part is not None]
        if not present:
            continue
        firsts.append(TableRows.concatenate([part.rows for part in present]))
        numbers.append(number)
        groups = np.concatenate([part.groups for part in present])
        ends = np.zeros((len(groups), 2), np.int64)
        row_ranges.append(ends)
        if not len(needed.groups):
            continue
        second = pivot.second.load(needed.groups)
        linked = groups != NO_LINK
        positions = np.searchsorted(needed.groups, groups[linked])
        ends[linked, 0], ends[linked, 1] = row + second.groups[positions], row + second.groups[positions + 1]
        loaded.append(second)
        row += len(second)
    if not loaded:
        return
    first, order = merged(firsts)
    pivot_numbers = np.repeat(np.array(numbers, np.int32), [len(rows) for rows in firsts])
    yield SourceBatch(first, pivot_numbers[order], np.concatenate(row_ranges)[order], TableRows.concatenate(loaded))


def merged(tables: Sequence[TableRows]) -> tuple[TableRows, Int64Array]:
    """Merge the entries of several tables, grouped by source.

    Returns:
        The entries, and for each its row in the concatenated tables.
    """
    if len(tables) == 1:
        return tables[0], np.arange(len(tables[0]))
    together = TableRows.concatenate(tables)
    keys = [together.key(group) for group in range(len(together.sources))]
    # The sort is stable: the entries of a source keep the order of the tables.
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    rows = Ragged(np.arange(len(together)), together.groups).select(order)
    starts = [k for k, group in enumerate(order) if k == 0 or keys[group] != keys[order[k - 1]]]
    sources = together.sources.select(order[starts])
    groups = np.append(rows.offsets[starts], len(together))
    return TableRows(
        sources, groups, together.targets.select(rows.items), together.points.select(rows.items),
        together.numbers[rows.items],
    ), rows.items  # fmt: skip
