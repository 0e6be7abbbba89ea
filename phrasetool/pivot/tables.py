"""Entries of source-pivot and pivot-target tables, in blocks in memory and on disk.

Two such tables, joined by their pivot phrases, give a source-target table.
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

# Columns of the numbers of an entry: p(s|t), its lexical weight, p(t|s), its lexical weight, the count of the pair, and
# the count of the phrase that is not in the pivot language.
INVERSE, INVERSE_LEXICAL, DIRECT, DIRECT_LEXICAL, JOINT, OUTER = range(6)
FIXED_NUMBERS = 6
# Numbers of optional columns that follow: similarities source-to-target and target-to-source in [0, 1]; probabilities
# of monotone, swap and other with respect to the previous phrase, then to the next.
SIMILARITIES, ORIENTATIONS = 2, 6
# Suffix of every phrase, with which its bytes sort like the lines of a table.
PHRASE_END = b" |||"
# Bytes that an entry takes during processing, in addition to the stored ones: the number of its target, a slot of the
# hash table that numbers targets, and an element of the sort order of their bytes.
_WORKED_ON = 40


@dataclass(frozen=True)
class Ragged:
    """N runs of items in one array.

    Attributes:
        items: the concatenated items of all runs.
        offsets: int64, shape (N + 1,), the start of each run.
    """

    items: npt.NDArray[Any]
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, run: int) -> npt.NDArray[Any]:
        return self.items[self.offsets[run] : self.offsets[run + 1]]

    def part(self, first: int, last: int) -> Ragged:
        """Return the runs in [first, last); their items are a view."""
        offsets = self.offsets[first : last + 1]
        return Ragged(self.items[offsets[0] : offsets[-1]], offsets - offsets[0])

    def select(self, runs: Int64Array) -> Ragged:
        """Return the given runs, in the given order."""
        offsets, indices = gathered_runs(self.offsets[:-1][runs], np.diff(self.offsets)[runs])
        return Ragged(self.items[indices], offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """Return all runs of at least one part."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = prefix_sums(lengths)
        return cls(np.concatenate([part.items for part in parts]), offsets)


@dataclass(frozen=True)
class TableRows:
    """N entries of a table, in G groups of the same source.

    Attributes:
        sources: uint8, the bytes of each group's source, followed by `PHRASE_END`.
        groups: int64, shape (G + 1,), the first entry of each group.
        targets: uint8, the bytes of each entry's target, followed by `PHRASE_END`.
        points: int32, the alignment points of each entry, source position << 16 | target position.
        numbers: float64, shape (N, K), the columns described at `INVERSE` and `SIMILARITIES`.
    """

    sources: Ragged
    groups: Int64Array
    targets: Ragged
    points: Ragged
    numbers: DoubleArray

    def __len__(self) -> int:
        return len(self.numbers)

    def key(self, group: int) -> bytes:
        """Return the source of a group as a sort key."""
        return bytes(self.sources[group].tobytes())

    def part(self, first: int, last: int) -> TableRows:
        """Return a view of the groups in [first, last)."""
        groups = self.groups[first : last + 1]
        a, b = int(groups[0]), int(groups[-1])
        return TableRows(
            self.sources.part(first, last), groups - a, self.targets.part(a, b), self.points.part(a, b),
            self.numbers[a:b],
        )  # fmt: skip

    def select(self, groups: Int64Array) -> TableRows:
        """Return the given groups, in the given order."""
        rows = Ragged(np.arange(len(self)), self.groups).select(groups)
        return TableRows(
            self.sources.select(groups), rows.offsets, self.targets.select(rows.items), self.points.select(rows.items),
            self.numbers[rows.items],
        )  # fmt: skip

    @classmethod
    def concatenate(cls, parts: Sequence[TableRows]) -> TableRows:
        """Return all groups of at least one part."""
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
    """Return a 128-bit hash of each phrase, uint64, shape (N, 2).

    The probability of a collision among a billion phrases is below 10^-20.
    """
    hashes = np.empty((len(phrases), 2), np.uint64)
    _hash(np.ascontiguousarray(phrases.items, np.uint8), phrases.offsets, hashes)
    return hashes


class TableStore:
    """The entries of a table, in unnamed temporary files.

    Args:
        folder: directory of the files; None for the system's temporary directory.
        numbers: number of columns of `TableRows.numbers`.

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
        """Number of sources."""
        return self._groups[-1]

    def append(self, rows: TableRows) -> None:
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

    def blocks(self) -> Iterator[TableRows]:
        """Return an iterator over all blocks, in order."""
        return map(self._block, range(len(self._groups) - 1))

    def load(self, groups: Int64Array) -> TableRows:
        """Read groups.

        Args:
            groups: int64, ascending group numbers, at least one.

        Raises:
            PhraseToolError: the groups cannot be read.
        """
        bounds = np.searchsorted(groups, self._groups)
        return TableRows.concatenate(
            [
                self._block(block).select(groups[first:last] - self._groups[block])
                for block, (first, last) in enumerate(pairwise(bounds.tolist()))
                if first < last
            ]
        )

    def _block(self, block: int) -> TableRows:
        first, last = self._rows[block], self._rows[block + 1]
        sizes = self._sizes.read(self._groups[block], self._groups[block + 1])
        groups = prefix_sums(sizes)
        return TableRows(
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


def bytes_of_groups(rows: TableRows) -> Int64Array:
    """Return the number of bytes that each group takes during processing, int64, shape (G,)."""
    fixed = rows.numbers.shape[1] * 8 + 16 + _WORKED_ON
    by_row = np.diff(rows.targets.offsets) + 4 * np.diff(rows.points.offsets) + fixed
    ends = prefix_sums(by_row)[rows.groups]
    sizes: Int64Array = np.diff(ends) + np.diff(rows.sources.offsets) + 16
    return sizes
