"""Similarities from vectors of sentence encoders: centring, and the margin over the nearest neighbours.

The cosines of such encoders lie in a narrow range, and some phrases are near to all others.  Therefore the mean of the
vectors of a language is subtracted, and a pair is scored by the margin over its neighbours (CSLS, Conneau et al. 2018):

    margin(s, t) = 2 cos(s, t) - r(s) - r(t)

r(s) is the mean cosine of s with its k nearest neighbours in a sample of phrases of the other side; r(t) likewise.

Vectors are stored as float16 and computed with as float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array
from phrasetool.pipeline import run

HalfArray = npt.NDArray[np.float16]
# Number of nearest neighbours, and size of the sample of the other side in which they are searched.
NEAREST, SAMPLE = 10, 20_000
# Rows that are processed together: a constant, because results must not depend on it.
ROWS = 512
_SEED = 1
# float16 -> float32 by integers: the exponent of float16 is biased by 15, that of float32 by 127.
_SIGN, _REST, _SHIFT = 0x8000, 0x7FFF, 13
_BIAS = np.float32(2.0**112)
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


@dataclass(frozen=True)
class Normalisation:
    """Normalisation of vectors and cosines.

    Attributes:
        name: its name on the command line.
        centred: the mean of a language is subtracted from its vectors.
        margin: the margin is the similarity, not the cosine.
    """

    name: str
    centred: bool
    margin: bool


NORMALISATIONS = {
    normalisation.name: normalisation
    for normalisation in (
        Normalisation("centred-margin", True, True),
        Normalisation("margin", False, True),
        Normalisation("centred", True, False),
        Normalisation("cosine", False, False),
    )
}


def chunks(rows: int) -> Iterator[tuple[int, int]]:
    """Divide rows into chunks; yield the first row of each and the row after its last."""
    return ((first, min(first + ROWS, rows)) for first in range(0, rows, ROWS))


def unit_rows(vectors: npt.NDArray[Any]) -> FloatArray:
    """Scale rows to length one; zero rows stay zero."""
    exact = vectors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact, dtype=np.float64))[:, None]
    scaled: FloatArray = (exact / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def mean_direction(vectors: HalfArray) -> FloatArray:
    """Return the mean of the rows scaled to length one, without zero rows; float32, shape (n,)."""
    total, count = np.zeros(vectors.shape[1], np.float64), 0
    for first, last in chunks(len(vectors)):
        rows = unit_rows(vectors[first:last])
        total += rows.sum(0, dtype=np.float64)
        count += int(rows.any(1).sum())
    return (total / max(count, 1)).astype(np.float32)


def prepared(vectors: HalfArray, centre: FloatArray | None) -> Iterator[HalfArray]:
    """Yield rows scaled to length one, chunk by chunk, as float16; zero rows stay zero.

    Args:
        vectors: vectors of an encoder, shape (N, n).
        centre: vector to subtract from each unit row; None for no centring.
    """
    for first, last in chunks(len(vectors)):
        rows = unit_rows(vectors[first:last])
        if centre is not None:
            rows = unit_rows(np.where(rows.any(axis=1, keepdims=True), rows - centre, np.float32(0)))
        yield rows.astype(np.float16)


def sample_rows(vectors: HalfArray, size: int = SAMPLE, seed: int = _SEED) -> FloatArray:
    """Draw a random sample of nonzero rows; float32, shape (at most `size`, n)."""
    known = np.concatenate([np.zeros(0, np.int64), *(
        first + np.flatnonzero(np.asarray(vectors[first:last]).any(1)) for first, last in chunks(len(vectors))
    )])  # fmt: skip
    if len(known) > size:
        known = np.sort(np.random.default_rng(seed).choice(known, size, replace=False))
    return np.ascontiguousarray(vectors[known], np.float32)


def nearness(vectors: HalfArray, others: FloatArray, threads: int = 1, k: int = NEAREST) -> FloatArray:
    """Return r, the mean cosine of each row with its k nearest neighbours; float32, shape (N,); 0 for zero rows.

    Args:
        vectors: unit rows, shape (N, n).
        others: unit rows of the other side, shape (S, n), result of `sample_rows`; if S < k, all are neighbours.
        threads: worker threads; the result does not depend on their number.
        k: number of neighbours.
    """
    from threadpoolctl import threadpool_limits

    k = min(k, len(others))
    if not k:
        return np.zeros(len(vectors), np.float32)
    transposed = np.ascontiguousarray(others.T)

    def work(chunk: tuple[int, int]) -> FloatArray:
        # The number of rows is constant, so that the product is computed in the same way for any number of phrases.
        rows = np.zeros((ROWS, vectors.shape[1]), np.float32)
        rows[: chunk[1] - chunk[0]] = vectors[chunk[0] : chunk[1]]
        means = np.empty(ROWS, np.float32)
        _mean_of_largest(rows @ transposed, np.empty(k, np.float32), means)
        return means[: chunk[1] - chunk[0]]

    # Products use one thread, because their last bits may depend on the number of threads.
    with threadpool_limits(1, "blas"):
        return np.concatenate([np.zeros(0, np.float32), *run(chunks(len(vectors)), work, threads)])


@kernel
def _mean_of_largest(values: FloatArray, largest: FloatArray, means: FloatArray) -> None:
    """means[i] = the mean of the len(largest) largest values of row i."""
    k = len(largest)
    for row in range(len(values)):
        # Descending.
        count = 0
        for i in range(values.shape[1]):
            value = values[row, i]
            if count == k and value <= largest[k - 1]:
                continue
            place = count if count < k else k - 1
            while place > 0 and largest[place - 1] < value:
                largest[place] = largest[place - 1]
                place -= 1
            largest[place] = value
            count = min(count + 1, k)
        total = _ZERO
        for i in range(k):
            total += largest[i]
        means[row] = total / np.float32(k)


@kernel
def _widen(row: npt.NDArray[np.uint16], bits: Int32Array, values: FloatArray) -> None:
    """values = the float16 numbers whose bits are given; `bits` is the memory of `values`."""
    for i in range(len(row)):
        half = np.int32(row[i])
        bits[i] = ((half & _SIGN) << 16) | ((half & _REST) << _SHIFT)
    for i in range(len(row)):
        values[i] *= _BIAS


@kernel
def _dot(a: FloatArray, b: FloatArray, sums: FloatArray) -> float:
    """Return the dot product, with 16 running sums in a fixed order."""
    n = len(a)
    whole = n - n % 16
    for j in range(16):
        sums[j] = _ZERO
    for i in range(0, whole, 16):
        for j in range(16):
            sums[j] += a[i + j] * b[i + j]
    for i in range(whole, n):
        sums[i - whole] += a[i] * b[i]
    total = _ZERO
    for j in range(16):
        total += sums[j]
    return total


@kernel
def _similarities(
    source_rows: Int64Array,
    target_rows: Int64Array,
    sources: npt.NDArray[np.uint16],
    targets: npt.NDArray[np.uint16],
    source_nearness: FloatArray,
    target_nearness: FloatArray,
    margin: bool,
    values: FloatArray,
    known: npt.NDArray[np.bool_],
) -> None:
    n = sources.shape[1]
    source, target, sums = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(16, np.float32)
    source_bits, target_bits = source.view(np.int32), target.view(np.int32)
    held = np.int64(-1)
    nothing = True
    for i in range(len(source_rows)):
        s, t = source_rows[i], target_rows[i]
        values[i] = _ZERO
        known[i] = False
        if s < 0 or t < 0:
            continue
        if s != held:
            _widen(sources[s], source_bits, source)
            held = s
            nothing = _dot(source, source, sums) == _ZERO
        if nothing:
            continue
        _widen(targets[t], target_bits, target)
        if _dot(target, target, sums) == _ZERO:
            continue
        value = min(max(_dot(source, target, sums), -_ONE), _ONE)
        if margin:
            value = min(max(_TWO * value - source_nearness[s] - target_nearness[t], -_ONE), _ONE)
        values[i] = value
        known[i] = True


def pair_similarities(
    source_rows: Int64Array,
    target_rows: Int64Array,
    vectors: tuple[HalfArray, HalfArray],
    reached: tuple[FloatArray, FloatArray],
    margin: bool,
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the similarities of N pairs of phrases, clipped to [-1, 1].

    Args:
        source_rows, target_rows: rows of the vectors, int64, shape (N,); -1 for a phrase without a vector.
        vectors: unit rows of both sides, float16, shapes (S, n) and (T, n).
        reached: r of both sides, shapes (S,) and (T,); ignored without `margin`.
        margin: whether the similarity is the margin instead of the cosine.

    Returns:
        float32, shape (N,), 0 where a side has no vector or a zero one; and whether both sides have one.

    Raises:
        ValueError: shapes or types differ from those above, or a row is out of range.
    """
    for rows, matrix in zip((source_rows, target_rows), vectors, strict=True):
        if rows.dtype != np.int64 or matrix.dtype != np.float16 or matrix.shape[1] != vectors[0].shape[1]:
            raise ValueError("expected int64 rows of float16 matrices of one dimension")
        if len(rows) != len(source_rows) or (len(rows) and not -1 <= int(rows.min()) <= int(rows.max()) < len(matrix)):
            raise ValueError("a row is outside the vectors")
    if margin and any(len(r) != len(v) for r, v in zip(reached, vectors, strict=True)):
        raise ValueError("expected a nearness for each vector")
    similarities, known = np.empty(len(source_rows), np.float32), np.empty(len(source_rows), np.bool_)
    halves = [matrix.view(np.uint16) for matrix in vectors]
    _similarities(source_rows, target_rows, *halves, *reached, margin, similarities, known)
    return similarities, known
