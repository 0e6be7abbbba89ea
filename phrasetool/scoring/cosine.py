"""The fused kernel: gather four vectors by index, two dot products, one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import borrowing_float_kernel
from phrasetool.phrases import FloatArray, Int64Array

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@borrowing_float_kernel
def _dot(a: FloatArray, i: int, b: FloatArray, j: int) -> float:
    """Of the rows a[i] and b[j]: four running sums, in a fixed order."""
    n = a.shape[1]
    whole = n - n % 4
    s0, s1, s2, s3 = _ZERO, _ZERO, _ZERO, _ZERO
    for k in range(0, whole, 4):
        s0 += a[i, k] * b[j, k]
        s1 += a[i, k + 1] * b[j, k + 1]
        s2 += a[i, k + 2] * b[j, k + 2]
        s3 += a[i, k + 3] * b[j, k + 3]
    for k in range(whole, n):
        s0 += a[i, k] * b[j, k]
    return (s0 + s1) + (s2 + s3)


@borrowing_float_kernel
def _pair_cosines(
    source_index: Int64Array,
    target_index: Int64Array,
    source_encoded: FloatArray,
    source_transformed: FloatArray,
    target_encoded: FloatArray,
    target_transformed: FloatArray,
    similarities: FloatArray,
) -> None:
    for i in range(len(source_index)):
        s, t = source_index[i], target_index[i]
        st = _dot(source_transformed, s, target_encoded, t)
        ts = _dot(target_transformed, t, source_encoded, s)
        similarities[i, 0] = min(max(st, -_ONE), _ONE)
        similarities[i, 1] = min(max(ts, -_ONE), _ONE)


def pair_cosines(
    source_index: npt.NDArray[np.integer],
    target_index: npt.NDArray[np.integer],
    source_vectors: tuple[FloatArray, FloatArray],
    target_vectors: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Both similarities of N pairs: sim_st = cos(f(Wl_s p_s + bl_s), p_t) and sim_ts, its mirror image.

    Args:
        source_index, target_index: shape (N,), rows of the vectors.
        source_vectors: phrase vectors and their transformations, each float32 of shape (S, n), of length one or zero.
        target_vectors: likewise, shape (T, n).

    Returns:
        float32, shape (N, 2), in [-1, 1]; 0 where a vector is zero.

    Raises:
        ValueError: shapes or types do not fit.
    """
    arrays = [*source_vectors, *target_vectors]
    if any(a.dtype != np.float32 or a.ndim != 2 or a.shape[1] != arrays[0].shape[1] for a in arrays):
        raise ValueError("vectors must be float32 matrices of one dimension")
    if len(source_index) != len(target_index):
        raise ValueError(f"{len(source_index)} source and {len(target_index)} target indices")
    for index, (vectors, _) in ((source_index, source_vectors), (target_index, target_vectors)):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(vectors):
            raise ValueError("an index is outside the vectors")
    similarities = np.empty((len(source_index), 2), np.float32)
    _pair_cosines(
        source_index.astype(np.int64, copy=False), target_index.astype(np.int64, copy=False), *arrays, similarities
    )
    return similarities
