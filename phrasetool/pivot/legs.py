"""Legs: tables to and from a pivot language, block by block in memory and on disk.

Two legs joined by their pivot phrases make a third table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.disk.columns import DiskColumn
from phrasetool.kernels.hashing import FNV_BASIS, GOLDEN, fnv, mix
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array, gathered_runs, prefix_sums

# Columns of the numbers of an entry: p(s|t), its lexical weight, p(t|s), its lexical weight, how often the pair was
# seen, and how often the end of the leg that is not in the middle was.
INVERSE, INVERSE_LEXICAL, DIRECT, DIRECT_LEXICAL, JOINT, OUTER = range(6)
FIXED_NUMBERS = 6
# Behind them, where there are some: similarities source-to-target and target-to-source in [0, 1], then probabilities of
# monotone, swap, other towards the phrase before, and towards the next.
SIMILARITIES, ORIENTATIONS = 2, 6
# Suffix of every phrase, with which its bytes sort as lines of a table do.
PHRASE_END = b" |||"
# Bytes that an entry takes during processing, in addition to the stored ones: the number of its target, and its places
# in the table that numbers them and in the order of their bytes.
_WORKED_ON = 40


@dataclass(frozen=True)
class Ragged:
    """N runs of items, one after another.

    Attributes:
        items: the items of all.
        offsets: int64, shape (N + 1,), where each run begins.
    """

    items: npt.NDArray[Any]
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, run: int) -> npt.NDArray[Any]:
        return self.items[self.offsets[run] : self.offsets[run + 1]]

    def part(self, first: int, last: int) -> Ragged:
        """Runs first..last - 1; their items are a view."""
        offsets = self.offsets[first : last + 1]
        return Ragged(self.items[offsets[0] : offsets[-1]], offsets - offsets[0])

    def select(self, runs: Int64Array) -> Ragged:
        """These runs, in this order."""
        offsets, places = gathered_runs(self.offsets[:-1][runs], np.diff(self.offsets)[runs])
        return Ragged(self.items[places], offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """All runs of the parts, of which there is at least one."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = prefix_sums(lengths)
        return cls(np.concatenate([part.items for part in parts]), offsets)


@dataclass(frozen=True)
class LegRows:
    """N entries of a leg, in G groups of one source.

    Attributes:
        sources: uint8, the bytes of each group's source, `PHRASE_END` behind it.
        groups: int64, shape (G + 1,), the first entry of each group.
        targets: uint8, as the sources, of each entry.
        points: int32, the alignment points of each entry, source position << 16 | target position.
        numbers: float64, shape (N, K), see above.
    """

    sources: Ragged
    groups: Int64Array
    targets: Ragged
    points: Ragged
    numbers: DoubleArray

    def __len__(self) -> int:
        return len(self.numbers)

    def key(self, group: int) -> bytes:
        """The source of a group, as it sorts."""
        return bytes(self.sources[group].tobytes())

    def part(self, first: int, last: int) -> LegRows:
        """Groups first..last - 1; a view."""
        groups = self.groups[first : last + 1]
        a, b = int(groups[0]), int(groups[-1])
        return LegRows(
            self.sources.part(first, last), groups - a, self.targets.part(a, b), self.points.part(a, b),
            self.numbers[a:b],
        )  # fmt: skip

    def select(self, groups: Int64Array) -> LegRows:
        """These groups, in this order."""
        rows = Ragged(np.arange(len(self)), self.groups).select(groups)
        return LegRows(
            self.sources.select(groups), rows.offsets, self.targets.select(rows.items), self.points.select(rows.items),
            self.numbers[rows.items],
        )  # fmt: skip

    @classmethod
    def concatenate(cls, parts: Sequence[LegRows]) -> LegRows:
        """All groups of the parts, of which there is at least one."""
        sizes = np.concatenate([np.diff(part.groups) for part in parts])
        groups = prefix_sums(sizes)
        return cls(
            Ragged.concatenate([part.sources for part in parts]), groups,
            Ragged.concatenate([part.targets for part in parts]), Ragged.concatenate([part.points for part in parts]),
            np.concatenate([part.numbers for part in parts]),
        )  # fmt: skip


@exact_kernel
def _hash(text: ByteArray, offsets: Int64Array, hashes: npt.NDArray[np.uint64]) -> None:
    for run in range(len(hashes)):
        first, second = FNV_BASIS, GOLDEN
        for i in range(offsets[run], offsets[run + 1]):
            first = fnv(first, text[i])
            second = mix(second, text[i])
        hashes[run, 0], hashes[run, 1] = first, second


def hash_phrases(phrases: Ragged) -> npt.NDArray[np.uint64]:
    """128 bits of a hash of each phrase, uint64, shape (N, 2); of a billion phrases no two share theirs, but for a
    chance of one to 10^20."""
    hashes = np.empty((len(phrases), 2), np.uint64)
    _hash(np.ascontiguousarray(phrases.items, np.uint8), phrases.offsets, hashes)
    return hashes


class LegStore:
    """The entries of a leg in files without a name.

    Args:
        folder: where these are; None for the system's folder of temporary files.
        numbers: columns of numbers.

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None, numbers: int) -> None:
        self._sources, self._targets, self._points = (
            _RaggedColumn(folder, dtype) for dtype in (np.uint8, np.uint8, np.int32)
        )
        self._sizes = DiskColumn(folder, np.int64)
        self._numbers = DiskColumn(folder, np.float64, numbers)
        self._groups, self._rows = [0], [0]

    def __len__(self) -> int:
        return self._rows[-1]

    @property
    def groups(self) -> int:
        """How many sources there are."""
        return self._groups[-1]

    def append(self, rows: LegRows) -> None:
        """Write a block of whole groups.

        Raises:
            PhraseToolError: the disk is full.
        """
        self._sources.append(rows.sources)
        self._targets.append(rows.targets)
        self._points.append(rows.points)
        self._sizes.append(np.diff(rows.groups))
        self._numbers.append(rows.numbers)
        self._groups.append(self._groups[-1] + len(rows.sources))
        self._rows.append(self._rows[-1] + len(rows))

    def blocks(self) -> Iterator[LegRows]:
        """All blocks, in order."""
        return map(self._block, range(len(self._groups) - 1))

    def load(self, groups: Int64Array) -> LegRows:
        """Some groups.

        Args:
            groups: int64, ascending, their numbers; at least one.

        Raises:
            PhraseToolError: they cannot be read.
        """
        bounds = np.searchsorted(groups, self._groups)
        return LegRows.concatenate(
            [
                self._block(block).select(groups[first:last] - self._groups[block])
                for block, (first, last) in enumerate(pairwise(bounds.tolist()))
                if first < last
            ]
        )

    def _block(self, block: int) -> LegRows:
        first, last = self._rows[block], self._rows[block + 1]
        sizes = self._sizes.read(self._groups[block], self._groups[block + 1])
        groups = prefix_sums(sizes)
        return LegRows(
            self._sources.block(block), groups, self._targets.block(block), self._points.block(block),
            self._numbers.read(first, last),
        )  # fmt: skip


class _RaggedColumn:
    """Ragged blocks on disk."""

    def __init__(self, folder: str | None, dtype: type) -> None:
        self._items, self._offsets = DiskColumn(folder, dtype), DiskColumn(folder, np.int64)
        self._places = [(0, 0)]

    def append(self, runs: Ragged) -> None:
        self._items.append(runs.items)
        self._offsets.append(runs.offsets)
        self._places.append((len(self._items), len(self._offsets)))

    def block(self, number: int) -> Ragged:
        (item, offset), (last_item, last_offset) = self._places[number : number + 2]
        return Ragged(self._items.read(item, last_item), self._offsets.read(offset, last_offset))


def bytes_of_groups(rows: LegRows) -> Int64Array:
    """int64, shape (G,): the memory that each group takes while it is worked on."""
    fixed = rows.numbers.shape[1] * 8 + 16 + _WORKED_ON
    by_row = np.diff(rows.targets.offsets) + 4 * np.diff(rows.points.offsets) + fixed
    ends = prefix_sums(by_row)[rows.groups]
    sizes: Int64Array = np.diff(ends) + np.diff(rows.sources.offsets) + 16
    return sizes
