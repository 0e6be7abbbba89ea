"""Sets of sentence numbers: those in which phrases occur, what they share, and how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array


@exact_kernel
def _keep_common(values: Int32Array, count: int, others: Int32Array, first: int, last: int, write: bool) -> int:
    """How many of values[:count] are in others[first:last], both ascending; `write` moves them to the front.

    Searched with steps that double (Bentley and Yao 1976), which is good for sets of equal and of unequal size.
    """
    common = 0
    low = first
    for i in range(count):
        value = values[i]
        step = 1
        high = low
        while high < last and others[high] < value:
            low = high + 1
            high += step
            step *= 2
        high = min(high, last)
        while low < high:
            middle = (low + high) // 2
            if others[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low == last:
            break
        if others[low] == value:
            if write:
                values[common] = value
            common += 1
    return common


@exact_kernel
def _count_common(
    pool_a: Int32Array, own_a: Int32Array, starts_a: Int64Array, counts_a: Int64Array, rows_a: Int64Array,
    pool_b: Int32Array, own_b: Int32Array, starts_b: Int64Array, counts_b: Int64Array, rows_b: Int64Array,
    common: Int64Array,
) -> None:  # fmt: skip
    """common[i] = how many sentences the sets rows_a[i] and rows_b[i] share.  A negative start, ~s, is in the pool."""
    for i in range(len(common)):
        a, b = rows_a[i], rows_b[i]
        n_a, n_b = counts_a[a], counts_b[b]
        start_a, start_b = starts_a[a], starts_b[b]
        array_a = own_a if start_a >= 0 else pool_a
        array_b = own_b if start_b >= 0 else pool_b
        start_a = start_a if start_a >= 0 else ~start_a
        start_b = start_b if start_b >= 0 else ~start_b
        if n_a <= n_b:
            common[i] = _keep_common(array_a[start_a:], n_a, array_b, start_b, start_b + n_b, False)
        else:
            common[i] = _keep_common(array_b[start_b:], n_b, array_a, start_a, start_a + n_a, False)


@exact_kernel
def _intersect(
    pool: Int32Array, own: Int32Array, starts: Int64Array, counts: Int64Array, numbers: Int64Array, parts: Int64Array,
    place: int, new_starts: Int64Array, new_counts: Int64Array,
) -> None:  # fmt: skip
    """New set i = what the sets numbers[parts[i]:parts[i + 1]] share; written to own[place:] if they are several."""
    for i in range(len(new_counts)):
        first, last = parts[i], parts[i + 1]
        if first == last:
            new_starts[i] = new_counts[i] = 0
            continue
        smallest = first
        for k in range(first + 1, last):
            if counts[numbers[k]] < counts[numbers[smallest]]:
                smallest = k
        start = starts[numbers[smallest]]
        count = counts[numbers[smallest]]
        if last - first == 1:
            new_starts[i], new_counts[i] = start, count
            continue
        for s in range(count):
            own[place + s] = own[start + s] if start >= 0 else pool[~start + s]
        for k in range(first, last):
            if k != smallest:
                start = starts[numbers[k]]
                array = own if start >= 0 else pool
                start = start if start >= 0 else ~start
                count = _keep_common(own[place:], count, array, start, start + counts[numbers[k]], True)
        new_starts[i], new_counts[i] = place, count
        place += count


@dataclass(frozen=True)
class SentenceSets:
    """The sentences in which each of N phrases occurs, in ascending order and each once.

    Attributes:
        counts: int64, shape (N,), how many sentences.
        starts: int64, shape (N,), where the set begins in `own`; or, if negative, at `~start` in `pool`.
        own: int32, sentence numbers from 0.
        pool: int32, sets that the index remembers, shared by many.
    """

    counts: Int64Array
    starts: Int64Array
    own: Int32Array
    pool: Int32Array

    def intersect(self, numbers: Int64Array, parts: Int64Array) -> SentenceSets:
        """Sets of the sentences in which all parts of a phrase with gaps occur.

        Args:
            numbers: int64, shape (P,), which of these sets belongs to each part.
            parts: int64, shape (M + 1,), ascending from 0 to P: new set i is what the sets of the parts
                parts[i]..parts[i + 1] - 1 share.  Without parts it is empty.
        """
        numbers, parts = (np.ascontiguousarray(array, np.int64) for array in (numbers, parts))
        several = np.flatnonzero(np.diff(parts) > 1)
        room = sum(int(self.counts[numbers[parts[i] : parts[i + 1]]].min()) for i in several)
        own = np.empty(len(self.own) + room, np.int32)
        own[: len(self.own)] = self.own
        starts, counts = np.empty((2, len(parts) - 1), np.int64)
        _intersect(self.pool, own, self.starts, self.counts, numbers, parts, len(self.own), starts, counts)
        return SentenceSets(counts, starts, own, self.pool)


def count_common(first: SentenceSets, second: SentenceSets, rows: Int64Array, columns: Int64Array) -> Int64Array:
    """In how many sentences two phrases occur both.

    Args:
        first, second: sets of sentences of the two sides of one bitext.
        rows, columns: int64, shape (M,): pair i is the set rows[i] of the first and the set columns[i] of the second.

    Returns:
        int64, shape (M,).

    Raises:
        ValueError: there are not as many rows as columns.
    """
    if len(rows) != len(columns):
        raise ValueError(f"{len(rows)} phrases on one side, {len(columns)} on the other")
    common = np.empty(len(rows), np.int64)
    rows, columns = (np.ascontiguousarray(array, np.int64) for array in (rows, columns))
    _count_common(
        first.pool, first.own, first.starts, first.counts, rows,
        second.pool, second.own, second.starts, second.counts, columns, common,
    )  # fmt: skip
    return common
