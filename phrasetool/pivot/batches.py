"""As many sources at a time as memory holds what they lead to: merged entries of first legs, groups of second ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array
from phrasetool.pivot.legs import LegRows, LegStore, Ragged, bytes_of_groups
from phrasetool.pivot.links import NO_LINK, Links


@dataclass(frozen=True)
class Middle:
    """A middle language.

    Attributes:
        first, second: legs to it, and from it.
        links: from entries of the first to groups of the second.
    """

    first: LegStore
    second: LegStore
    links: Links


@dataclass(frozen=True)
class SourceBatch:
    """Sources with all their ways.

    Attributes:
        first: their entries in the first legs; those of one source stand together, in the order of the middles.
        middles: int32, shape (N,), which middle each is of.
        ways: int64, shape (N, 2), the rows of `second` that each leads to, from and to.
        second: groups of all second legs.
    """

    first: LegRows
    middles: Int32Array
    ways: Int64Array
    second: LegRows


@dataclass(frozen=True)
class _Part:
    """A run of sources of one first leg: entries, the group each leads to, and the memory of that."""

    rows: LegRows
    groups: Int64Array
    sizes: Int64Array

    def part(self, first: int, last: int) -> _Part:
        a, b = int(self.rows.groups[first]), int(self.rows.groups[last])
        return _Part(self.rows.part(first, last), self.groups[a:b], self.sizes[a:b])

    def sources_until(self, key: bytes) -> int:
        """How many sources are not behind the key."""
        low, high = 0, len(self.rows.sources)
        while low < high:
            middle = (low + high) // 2
            if self.rows.key(middle) <= key:
                low = middle + 1
            else:
                high = middle
        return low


# The parts of the middles for the same range of sources; None where a middle has none of these.
_Parts = tuple[_Part | None, ...]


def batches(middles: Sequence[Middle], memory: int) -> Iterator[SourceBatch]:
    """All sources of the first legs, in their order.

    Args:
        middles: at least one.
        memory: bytes that a batch should take; a source that leads to more is a batch of its own.
    """
    pending: list[_Parts] = []
    pending_groups: list[_SecondGroups] = [_SecondGroups() for _ in middles]
    for parts in _in_step([_parts(middle) for middle in middles]):
        for piece in _halved(parts, memory):
            more = [before.with_part(part) for before, part in zip(pending_groups, piece, strict=True)]
            if pending and sum(loads.size for loads in more) > memory:
                yield from _batch(middles, pending, pending_groups)
                pending, more = [], [_SecondGroups().with_part(part) for part in piece]
            pending.append(piece)
            pending_groups = more
    yield from _batch(middles, pending, pending_groups)


@dataclass(frozen=True)
class _SecondGroups:
    """Groups of a second leg, ascending, and the memory of these and of the entries that lead there."""

    groups: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    size: int = 0

    def with_part(self, part: _Part | None) -> _SecondGroups:
        if part is None:
            return self
        groups, first = np.unique(part.groups, return_index=True)
        first = first[groups != NO_LINK]
        groups = groups[groups != NO_LINK]
        places = np.searchsorted(self.groups, groups)
        new = np.ones(len(groups), np.bool_)
        inside = places < len(self.groups)
        new[inside] = self.groups[places[inside]] != groups[inside]
        size = self.size + int(part.sizes[first[new]].sum()) + int(bytes_of_groups(part.rows).sum())
        # A stable sort merges what is sorted already.
        return _SecondGroups(np.sort(np.concatenate([self.groups, groups[new]]), kind="stable"), size)


def _parts(middle: Middle) -> Iterator[_Part]:
    row = 0
    for rows in middle.first.blocks():
        yield _Part(rows, *middle.links.read(row, row + len(rows)))
        row += len(rows)


def _in_step(streams: Sequence[Iterator[_Part]]) -> Iterator[_Parts]:
    """Parts of all streams that end at the same source."""
    current = [next(stream, None) for stream in streams]
    while there := [part for part in current if part is not None]:
        cut = min(part.rows.key(len(part.rows.sources) - 1) for part in there)
        heads: list[_Part | None] = []
        for number, part in enumerate(current):
            if part is None:
                heads.append(None)
                continue
            last = len(part.rows.sources)
            taken = part.sources_until(cut)
            heads.append(part.part(0, taken) if taken else None)
            current[number] = part.part(taken, last) if taken < last else next(streams[number], None)
        yield tuple(heads)


def _halved(parts: _Parts, memory: int) -> Iterator[_Parts]:
    """Parts that fit into memory, or are of one source."""
    there = [part for part in parts if part is not None]
    largest = max(there, key=lambda part: len(part.rows.sources))
    sources = len(largest.rows.sources)
    if sources == 1 or sum(_SecondGroups().with_part(part).size for part in there) <= memory:
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
    middles: Sequence[Middle], pending: Sequence[_Parts], second_groups: Sequence[_SecondGroups]
) -> Iterator[SourceBatch]:
    """The batch of some parts; none where they lead nowhere."""
    loaded: list[LegRows] = []
    firsts: list[LegRows] = []
    ways: list[Int64Array] = []
    numbers: list[int] = []
    row = 0
    for number, (middle, needed) in enumerate(zip(middles, second_groups, strict=True)):
        parts = [piece[number] for piece in pending]
        # Entries that lead nowhere still count how often a source was seen.
        there = [part for part in parts if part is not None]
        if not there:
            continue
        firsts.append(LegRows.concatenate([part.rows for part in there]))
        numbers.append(number)
        groups = np.concatenate([part.groups for part in there])
        ends = np.zeros((len(groups), 2), np.int64)
        ways.append(ends)
        if not len(needed.groups):
            continue
        second = middle.second.load(needed.groups)
        linked = groups != NO_LINK
        places = np.searchsorted(needed.groups, groups[linked])
        ends[linked, 0], ends[linked, 1] = row + second.groups[places], row + second.groups[places + 1]
        loaded.append(second)
        row += len(second)
    if not loaded:
        return
    first, order = merged(firsts)
    of_middle = np.repeat(np.array(numbers, np.int32), [len(rows) for rows in firsts])
    yield SourceBatch(first, of_middle[order], np.concatenate(ways)[order], LegRows.concatenate(loaded))


def merged(legs: Sequence[LegRows]) -> tuple[LegRows, Int64Array]:
    """The entries of several legs, those of one source together.

    Returns:
        The entries, and for each where it stands when one leg comes behind the other.
    """
    if len(legs) == 1:
        return legs[0], np.arange(len(legs[0]))
    together = LegRows.concatenate(legs)
    keys = [together.key(group) for group in range(len(together.sources))]
    # Sorting is stable: of one source, the first leg comes first.
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    rows = Ragged(np.arange(len(together)), together.groups).select(order)
    starts = [k for k, group in enumerate(order) if k == 0 or keys[group] != keys[order[k - 1]]]
    sources = together.sources.select(order[starts])
    groups = np.append(rows.offsets[starts], len(together))
    return LegRows(
        sources, groups, together.targets.select(rows.items), together.points.select(rows.items),
        together.numbers[rows.items],
    ), rows.items  # fmt: skip
