"""Distinct keys with counts, in the order of the keys, in bounded memory.

A row is a fixed number of 64-bit words: first the key, then the counts.  Rows are added in any order; rows with equal
keys are combined into one row with the sums of their counts.  While the distinct rows fit in the given memory, nothing
is written to disk.  Otherwise sorted runs are written to temporary files and merged when they are read, a block of keys
at a time.  The files are memory-mapped, so cached parts of them may be shown as memory of the process; the system frees
them when needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import numpy.typing as npt

from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import PhraseToolError, reason
from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import exact_kernel
from phrasetool.kernels.sorting import sort_strings
from phrasetool.phrases import Int32Array, Int64Array

Rows = npt.NDArray[np.uint64]

_EMPTY = np.int32(-1)
_FIRST_CAPACITY = 1 << 12


@exact_kernel
def add_row(store: Rows, slots: Int32Array, size: int, row: Rows, key_words: int) -> int:
    """Add the counts of a row to the row with its key, or append it; return the number of rows in store.

    The store must have room for a row; the number of slots is a power of two and exceeds the number of rows.
    """
    h = GOLDEN
    for w in range(key_words):
        h = mix(h, row[w])
    mask = len(slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while True:
        candidate = slots[slot]
        if candidate < 0:
            slots[slot] = size
            store[size] = row
            return size + 1
        w = 0
        while w < key_words and store[candidate, w] == row[w]:
            w += 1
        if w == key_words:
            for c in range(key_words, len(row)):
                store[candidate, c] += row[c]
            return size
        slot = (slot + 1) & mask


@exact_kernel
def _add_rows(store: Rows, slots: Int32Array, size: int, rows: Rows, key_words: int) -> int:
    for i in range(len(rows)):
        size = add_row(store, slots, size, rows[i], key_words)
    return size


@exact_kernel
def _merge(a: Rows, b: Rows, key_words: int, out: Rows) -> int:
    """Merge two sorted arrays of distinct rows into `out`; return the number of rows."""
    i, k, size = 0, 0, 0
    while i < len(a) and k < len(b):
        w = 0
        while w < key_words and a[i, w] == b[k, w]:
            w += 1
        if w == key_words:
            out[size] = a[i]
            for c in range(key_words, a.shape[1]):
                out[size, c] += b[k, c]
            i += 1
            k += 1
        elif a[i, w] < b[k, w]:
            out[size] = a[i]
            i += 1
        else:
            out[size] = b[k]
            k += 1
        size += 1
    for rest in (a[i:], b[k:]):
        for row in range(len(rest)):
            out[size] = rest[row]
            size += 1
    return size


@exact_kernel
def _find(rows: Rows, keys: Rows, positions: Int64Array) -> None:
    """Set positions[i] to the first row whose leading words are not below keys[i]."""
    words = keys.shape[1]
    for i in range(len(keys)):
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) // 2
            w = 0
            while w < words and rows[middle, w] == keys[i, w]:
                w += 1
            if w < words and rows[middle, w] < keys[i, w]:
                low = middle + 1
            else:
                high = middle
        positions[i] = low


def find(rows: Rows, keys: Rows) -> Int64Array:
    """Find the positions of keys in sorted rows.

    Args:
        rows: uint64, shape (N, W), sorted.
        keys: uint64, shape (M, K), K <= W.

    Returns:
        int64, shape (M,): the first row whose first K words are not below the key's.
    """
    positions = np.empty(len(keys), np.int64)
    _find(np.ascontiguousarray(rows), np.ascontiguousarray(keys), positions)
    return positions


class CountedRows:
    """Collector of rows; see the module.  Use it as a context manager: on exit it removes the temporary files.

    Args:
        key_words, count_words: 64-bit words of the key, and of the counts after it.
        memory: bytes that rows may take up.
        folder: folder of the temporary files; by default the system's.
        expected: expected number of distinct rows; a good guess saves time, a bad one does no harm.
    """

    def __init__(
        self, key_words: int, count_words: int, memory: int, folder: str | None = None, expected: int = 0
    ) -> None:
        self.key_words = key_words
        self._width = key_words + count_words
        self._folder = folder
        # A row, its copy when it is sorted, its index in the order, its share of the slots.
        self._limit = max(memory // (16 * self._width + 24), 2)
        self.store: Rows = np.empty((min(max(_FIRST_CAPACITY, expected), self._limit), self._width), np.uint64)
        self.slots: Int32Array = np.full(2 * _power_of_two(len(self.store)), _EMPTY, np.int32)
        self.size = 0
        self._runs: list[Rows] = []
        self._scratch = contextlib.ExitStack()
        self._place: Path | None = None
        self._finished = False

    @property
    def spilled(self) -> bool:
        """Whether rows were written to disk."""
        return self._place is not None

    def make_room(self, rows: int) -> None:
        """Make room for this many new rows in the store: enlarge it, or spill it if it may not grow.

        Raises:
            PhraseToolError: the disk is full.
        """
        if self.size + rows <= len(self.store):
            return
        if self.size and self.size + rows > self._limit:
            self._spill()
        if self.size + rows > len(self.store):
            self._resize(max(rows, min(max(2 * len(self.store), self.size + rows), self._limit)))

    def _resize(self, capacity: int) -> None:
        store = np.empty((capacity, self._width), np.uint64)
        store[: self.size] = self.store[: self.size]
        self.slots = np.full(2 * _power_of_two(capacity), _EMPTY, np.int32)
        _add_rows(self.store, self.slots, 0, store[: self.size], self.key_words)
        self.store = store

    def add(self, rows: Rows) -> None:
        """Add rows, uint64, shape (N, key_words + count_words).

        Raises:
            PhraseToolError: the disk is full.
        """
        step = max(self._limit // 2, 1)
        for first in range(0, len(rows), step):
            part = np.ascontiguousarray(rows[first : first + step])
            self.make_room(len(part))
            self.size = _add_rows(self.store, self.slots, self.size, part, self.key_words)

    def _sorted(self) -> Int64Array:
        order = np.arange(self.size)
        sort_strings(self.store.ravel(), self._width, order, 0, self.size, 0, self.key_words, False)
        return order

    def _spill(self) -> None:
        """Write the store as a sorted run, and empty it."""
        order = self._sorted()
        step = 1 << 16
        self._write(self.store[order[first : first + step]] for first in range(0, len(order), step))
        self.slots.fill(_EMPTY)
        self.size = 0

    def _write(self, parts: Iterator[Rows]) -> None:
        """Write these parts as a new run in a temporary file."""
        rows = 0
        try:
            if self._place is None:
                folder = scratch_folder(self._folder, "phrasetool.", ".rows")
                self._place = Path(self._scratch.enter_context(folder))
            path = self._place / str(len(self._runs))
            with path.open("xb") as file:
                for part in parts:
                    file.write(np.ascontiguousarray(part).data)
                    rows += len(part)
        except OSError as error:
            where = self._place or self._folder or gettempdir()
            raise PhraseToolError(f"{where}: cannot write a temporary file: {reason(error)}") from error
        self._runs.append(np.memmap(path, np.uint64, "r", shape=(rows, self._width)))

    def finish(self) -> None:
        """Sort the rows, or write the remaining ones to disk, after all rows were added."""
        if self._finished:
            return
        self._finished = True
        if self._runs:
            if self.size:
                self._spill()
        else:
            self._runs = [self.store[self._sorted()]]
        self.size = 0
        self.store, self.slots = np.empty((0, self._width), np.uint64), np.empty(0, np.int32)

    def blocks(self, leading: int) -> Iterator[Rows]:
        """Yield all rows in order, in blocks; rows with the same `leading` words of the key are in one block.

        May be called repeatedly.  Without temporary files there is one block.
        """
        self.finish()
        if len(self._runs) == 1 and not self.spilled:
            yield self._runs[0]
            return
        bounds = self._bounds(leading)
        for first, last in pairwise(bounds):
            parts = [np.array(run[a:b]) for run, a, b in zip(self._runs, first, last, strict=True) if a < b]
            while len(parts) > 1:
                parts = [self._merged(parts[i : i + 2]) for i in range(0, len(parts), 2)]
            if parts:
                yield parts[0]

    def _merged(self, parts: list[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        out = np.empty((len(parts[0]) + len(parts[1]), self._width), np.uint64)
        return out[: _merge(parts[0], parts[1], self.key_words, out)]

    def _bounds(self, leading: int) -> list[list[int]]:
        """Return the start of each block in each run, and the ends of the runs."""
        # Rows of a block are held twice while they are merged.
        rows_per_block = max(self._limit // 2, 1)
        step = max(rows_per_block // (2 * len(self._runs)), 1)
        samples = np.concatenate([run[::step, :leading] for run in self._runs])
        samples = samples[np.lexsort(samples.T[::-1])]
        keys = np.unique(samples[:: max(rows_per_block // step, 1)][1:], axis=0)
        inner = np.stack([find(run, keys) for run in self._runs], axis=1).tolist() if len(keys) else []
        return [[0] * len(self._runs), *inner, [len(run) for run in self._runs]]

    def table(self) -> Rows:
        """Return all rows in order as one array, which is in a temporary file if the rows do not fit in memory."""
        self.finish()
        if len(self._runs) > 1:
            blocks = self.blocks(self.key_words)
            self._write(blocks)
            self._runs = self._runs[-1:]
        return self._runs[0]

    def __enter__(self) -> CountedRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._runs = []
        self._scratch.close()
        self._place = None


def _power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below the number, at least 2."""
    return 1 << max(number - 1, 1).bit_length()
