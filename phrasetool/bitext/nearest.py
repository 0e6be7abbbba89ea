"""Nearest-neighbour search between two sets of vectors: exact in both directions at once, or approximate with faiss.

Unit vectors are multiplied by SCALE and rounded to integers.  The product of two is then an integer that float32
represents exactly, whatever the order of summation: the processor's fastest matrix product gives the same bits for any
number of threads and any block size, and equal vectors are equally near.  Rounding changes a cosine by about 0.0001;
the cosines of the neighbours are computed again from the original vectors.

The number of faiss cells to search is chosen by measurement: it is increased until the nearest vectors of a sample
agree with those of exact search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.text_encoders.margins import HalfArray, pair_similarities
from phrasetool.watch import SILENT, Watch

# For dimensions up to LARGEST, (SCALE + sqrt(n) / 2) ** 2 < 2 ** 24; up to there, float32 represents every integer.
SCALE, LARGEST = 4000, 30_000
# Source and target rows multiplied at a time; maximum number of rows that a thread processes at a time.
ROWS, COLUMNS, MOST = 512, 1024, 4096
# Bounds below and above every product.
_LOW, _HIGH = np.float32(-(2.0**25)), np.float32(2.0**25)
_CHUNK = 32
# Required share of correct nearest neighbours, and the size of the sample on which it is measured.
AGREEMENT, SAMPLE = 0.98, 1000
# Training vectors per cell; rows per query.
_TRAINING, _QUERY_ROWS = 40, 512
_SEED = 1


@dataclass(frozen=True)
class Neighbours:
    """Nearest vectors of the other side.

    Attributes:
        rows: int64, shape (N, k), rows of the other side in descending order of cosine, ties in ascending order of
            rows; -1 where there is no neighbour, for instance for a zero vector.
        cosines: float32, shape (N, k); 0 where there is no neighbour.
    """

    rows: Int64Array
    cosines: FloatArray


def whole_numbers(vectors: npt.NDArray[Any]) -> FloatArray:
    """Return unit vectors multiplied by SCALE and rounded to integers, as float32."""
    rounded: FloatArray = np.rint(vectors.astype(np.float32) * np.float32(SCALE))
    return rounded


def nearest_both_ways(
    sources: HalfArray,
    targets: HalfArray,
    k: int,
    threads: int = 1,
    block: int | None = None,
    watch: Watch = SILENT,
) -> tuple[Neighbours, Neighbours]:
    """Return the k nearest targets of each source, and the k nearest sources of each target, by cosine.

    Args:
        sources, targets: unit rows, float16, shapes (S, n) and (T, n); zero rows neither have nor are neighbours.
        k: number of neighbours, limited to the number of rows of the other side.
        threads: number of worker threads.
        block: number of source rows that a thread processes at a time.
        watch: progress listener.

    Returns:
        Neighbours of the sources, shape (S, min(k, T)), and of the targets, shape (T, min(k, S)).

    Raises:
        ValueError: the dimensions differ or are too large, or `k` or `block` is not positive.
    """
    best = exact_rows(sources, targets, k, threads, block, watch)
    return with_cosines(best[0], sources, targets), with_cosines(best[1], targets, sources)


def exact_rows(
    sources: HalfArray,
    targets: HalfArray,
    k: int,
    threads: int = 1,
    block: int | None = None,
    watch: Watch = SILENT,
) -> tuple[Int64Array, Int64Array]:
    """Return only the rows of the neighbours that `nearest_both_ways` returns."""
    from threadpoolctl import threadpool_limits

    if sources.shape[1] != targets.shape[1] or sources.shape[1] > LARGEST:
        raise ValueError(
            f"expected vectors of equal dimension up to {LARGEST}, not {sources.shape} and {targets.shape}"
        )
    if k < 1 or (block is not None and block < 1):
        raise ValueError("expected a positive k and a positive block")
    near = min(k, len(targets)), min(k, len(sources))
    known = known_rows(targets)
    # Small enough that every thread gets blocks.
    block = block or max(ROWS, min(MOST, -(-len(sources) // (4 * threads * ROWS)) * ROWS))
    blocks = ((first, min(first + block, len(sources))) for first in range(0, len(sources), block))

    def work(place: tuple[int, int]) -> tuple[_Best, _Best]:
        return _of_block(sources, targets, known, place, near)

    forward: list[Int32Array] = [np.zeros((0, near[0]), np.int32)]
    backward = _Best.empty(len(targets), near[1])
    # One BLAS thread per product: the workers share the processors.
    with threadpool_limits(1, "blas"), watch.items("nearest", len(sources), "sentence") as tick:
        for forward_best, backward_best in run(blocks, work, threads):
            forward.append(forward_best.rows)
            _merge(backward_best.values, backward_best.rows, backward.values, backward.rows)
            tick(len(forward_best.rows))
    return np.concatenate(forward).astype(np.int64), backward.rows.astype(np.int64)


def with_cosines(rows: Int64Array, own: HalfArray, others: HalfArray) -> Neighbours:
    """Return neighbours with their cosines, computed independently of the search method."""
    none = np.zeros(0, np.float32)
    flat = np.repeat(np.arange(len(own), dtype=np.int64), rows.shape[1])
    cosines, _ = pair_similarities(flat, np.ascontiguousarray(rows.reshape(-1)), (own, others), (none, none), False)
    return Neighbours(rows, cosines.reshape(rows.shape))


@dataclass(frozen=True)
class _Best:
    """Largest products of each row in descending order, and the rows of the other side; -1 where there are fewer."""

    values: FloatArray
    rows: Int32Array

    @classmethod
    def empty(cls, count: int, k: int) -> _Best:
        return cls(np.full((count, k), _LOW, np.float32), np.full((count, k), -1, np.int32))


def _pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + size, count)) for first in range(0, count, size))


def known_rows(vectors: HalfArray) -> Mask:
    """Return which rows are not zero: bool, shape (N,)."""
    return np.concatenate([np.zeros(0, np.bool_), *(vectors[a:b].any(1) for a, b in _pieces(len(vectors), MOST))])


def _of_block(
    sources: HalfArray, targets: HalfArray, known: Mask, place: tuple[int, int], near: tuple[int, int]
) -> tuple[_Best, _Best]:
    """Return the best targets of a block of sources, and the best sources of this block for all targets."""
    own = whole_numbers(sources[place[0] : place[1]])
    own_known = known_rows(sources[place[0] : place[1]])
    forward, backward = _Best.empty(len(own), near[0]), _Best.empty(len(targets), near[1])
    least = np.where(known, _LOW, _HIGH).astype(np.float32)
    for c, d in _pieces(len(targets), COLUMNS):
        tile = np.ascontiguousarray(whole_numbers(targets[c:d]).T)
        for a, b in _pieces(len(own), ROWS):
            _select(
                own[a:b] @ tile, own_known[a:b], known[c:d], np.int64(place[0] + a), np.int64(c), least[c:d],
                forward.values[a:b], forward.rows[a:b], backward.values[c:d], backward.rows[c:d],
            )  # fmt: skip
    return forward, backward


@exact_kernel
def _insert(value: float, row: int, values: FloatArray, rows: Int32Array) -> None:
    """Insert a value into descending values, after equal values; the last value is dropped."""
    position = len(values) - 1
    while position > 0 and values[position - 1] < value:
        values[position] = values[position - 1]
        rows[position] = rows[position - 1]
        position -= 1
    values[position] = value
    rows[position] = row


@exact_kernel
def _select(
    products: FloatArray,
    row_known: Mask,
    column_known: Mask,
    first_row: int,
    first_column: int,
    least: FloatArray,
    row_values: FloatArray,
    row_rows: Int32Array,
    column_values: FloatArray,
    column_rows: Int32Array,
) -> None:
    """Merge the products of a tile into the best of its rows and columns; `least` is the lower bound per column."""
    count, width = products.shape
    last_row, last_column = row_values.shape[1] - 1, column_values.shape[1] - 1
    for i in range(count):
        if not row_known[i]:
            continue
        bound = row_values[i, last_row]
        for start in range(0, width, _CHUNK):
            end = min(start + _CHUNK, width)
            # Without a branch, so that the processor compares many at a time; few products exceed a bound.
            exceeding = 0
            for j in range(start, end):
                exceeding += int(products[i, j] > bound) | int(products[i, j] > least[j])
            if not exceeding:
                continue
            for j in range(start, end):
                value = products[i, j]
                if value > bound and column_known[j]:
                    _insert(value, first_column + j, row_values[i], row_rows[i])
                    bound = row_values[i, last_row]
                if value > least[j]:
                    _insert(value, first_row + i, column_values[j], column_rows[j])
                    least[j] = column_values[j, last_column]


@exact_kernel
def _merge(values: FloatArray, rows: Int32Array, best_values: FloatArray, best_rows: Int32Array) -> None:
    """Merge the best of later rows into the best of all rows."""
    last = best_values.shape[1] - 1
    for i in range(len(values)):
        for j in range(values.shape[1]):
            if rows[i, j] < 0 or not values[i, j] > best_values[i, last]:
                break
            _insert(values[i, j], rows[i, j], best_values[i], best_rows[i])


@dataclass(frozen=True)
class Agreement:
    """Accuracy of an approximate search.

    Attributes:
        share: share of the sample whose nearest neighbour is correct.
        sample: number of rows in the sample.
        cells, probed: number of cells, and number of cells that are searched.
    """

    share: float
    sample: int
    cells: int
    probed: int


def approximately_nearest(
    own: HalfArray, others: HalfArray, k: int, threads: int = 1, watch: Watch = SILENT
) -> tuple[Neighbours, Agreement]:
    """Return approximately the k nearest others of each row by cosine, and the accuracy of the search.

    Args:
        own, others: unit rows, float16, shapes (N, n) and (M, n); zero rows neither have nor are neighbours.
        k: number of neighbours, limited to M.
        threads: number of worker threads; the result does not depend on it.
        watch: progress listener.

    Raises:
        ModuleNotFoundError: faiss is not installed.
        ValueError: `k` is not positive, or the dimensions differ.
    """
    from threadpoolctl import threadpool_limits

    if k < 1 or own.shape[1] != others.shape[1]:
        raise ValueError("expected at least one neighbour, and vectors of equal dimension")
    known, query_rows = np.flatnonzero(known_rows(others)), np.flatnonzero(known_rows(own))
    rows = np.full((len(own), min(k, len(others))), -1, np.int64)
    if not len(known) or not len(query_rows):
        return with_cosines(rows, own, others), Agreement(1.0, 0, 0, 0)
    sample = np.sort(np.random.default_rng(_SEED).choice(query_rows, min(SAMPLE, len(query_rows)), replace=False))
    correct = exact_rows(np.ascontiguousarray(own[sample]), others, 1, threads)[0][:, 0]
    with threadpool_limits(1):
        index = _index(others, known, watch)
        probed = min(8, index.nlist)
        while True:
            nearest = known[_search(index, own, sample, 1, probed, threads)[:, 0]]
            share = float(_as_near(nearest, correct, own, others, sample).mean())
            if share >= AGREEMENT or probed == index.nlist:
                break
            probed = min(2 * probed, index.nlist)
        with watch.items("nearest", len(query_rows), "sentence") as tick:
            for first in range(0, len(query_rows), _QUERY_ROWS * threads * 4):
                part = query_rows[first : first + _QUERY_ROWS * threads * 4]
                nearest = _search(index, own, part, rows.shape[1], probed, threads)
                rows[part] = np.where(nearest >= 0, known[nearest], -1)
                tick(len(part))
    return _ordered(rows, own, others), Agreement(share, len(sample), index.nlist, probed)


def _index(vectors: HalfArray, known: Int64Array, watch: Watch) -> Any:
    """Return an inverted-file index of the known rows as float16."""
    import faiss

    faiss.omp_set_num_threads(1)
    dimension, cells = vectors.shape[1], max(1, min(4 * math.isqrt(len(known)), len(known) // _TRAINING))
    coarse = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFScalarQuantizer(
        coarse, dimension, cells, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
    )
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = _SEED, 8, 1
    rng = np.random.default_rng(_SEED)
    training = np.sort(rng.choice(known, min(_TRAINING * cells, len(known)), replace=False))
    index.train(np.ascontiguousarray(vectors[training], np.float32))
    with watch.items("index", len(known), "sentence") as tick:
        for first in range(0, len(known), 4096):
            part = known[first : first + 4096]
            index.add(np.ascontiguousarray(vectors[part], np.float32))
            tick(len(part))
    return index


def _search(index: Any, own: HalfArray, rows: Int64Array, k: int, probed: int, threads: int) -> Int64Array:
    """Return positions in the index: int64, shape (len(rows), k), -1 where fewer were found."""
    import faiss

    settings = faiss.SearchParametersIVF(nprobe=probed)  # type: ignore[call-arg]

    def work(part: Int64Array) -> Int64Array:
        # This setting applies to the current thread only.
        faiss.omp_set_num_threads(1)
        neighbours: Int64Array = index.search(np.ascontiguousarray(own[part], np.float32), k, params=settings)[1]
        return neighbours

    parts = (rows[first : first + _QUERY_ROWS] for first in range(0, len(rows), _QUERY_ROWS))
    return np.concatenate(list(run(parts, work, threads)))


def _as_near(
    nearest: Int64Array, right: Int64Array, own: HalfArray, others: HalfArray, sample: Int64Array
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each nearest vector is the correct one, or equal to it."""
    same: np.ndarray[Any, np.dtype[np.bool_]] = (nearest == right) | (others[nearest] == others[right]).all(1)
    return same


def _ordered(rows: Int64Array, own: HalfArray, others: HalfArray) -> Neighbours:
    """Sort the neighbours of each row by descending cosine, ties by row."""
    neighbours = with_cosines(rows, own, others)
    order = np.lexsort((rows, -neighbours.cosines, rows < 0), axis=1)
    return Neighbours(np.take_along_axis(rows, order, 1), np.take_along_axis(neighbours.cosines, order, 1))
