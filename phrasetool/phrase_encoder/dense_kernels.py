"""Kernels shared by encoders: affine maps of eight vectors at a time, tanh, exp, sums and normalisation.

Sums are always computed in the same order, so the result for a vector depends only on that vector.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.instructions import LANES, LONGEST_SUM, ROWS, SHORTEST_SUM, add_products, sum_by_halves
from phrasetool.kernels.jit import borrowing_float_kernel, kernel
from phrasetool.phrases import FloatArray, Int64Array

_ONE = np.float32(1.0)
_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)
# tanh(x) = x P(x^2) / Q(x^2) on [-7.9, 7.9]: a minimax fit made for this file (weighted least squares on Chebyshev
# nodes).  Largest error 5e-9 in exact arithmetic, 3.3e-7 in float32; beyond 7.9 tanh is 1 to within 3e-7.
_LIMIT = np.float32(7.9)
_P1 = np.float32(1.344445204e-01)
_P2 = np.float32(3.571696393e-03)
_P3 = np.float32(2.190342390e-05)
_P4 = np.float32(1.525969262e-08)
_Q1 = np.float32(4.677777421e-01)
_Q2 = np.float32(2.616441426e-02)
_Q3 = np.float32(3.411743718e-04)
_Q4 = np.float32(8.530552096e-07)

# exp(x) = 2^n exp(r), r = x - n ln 2, after expf of the Cephes library (Moshier): ln 2 in two parts, and a polynomial
# in r.  Largest relative error 1e-7 in float32.
_LOWEST = np.float32(-87.0)
_LOG2_E = np.float32(1.44269504)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_E2 = np.float32(5.0000001201e-1)
_E3 = np.float32(1.6666665459e-1)
_E4 = np.float32(4.1665795894e-2)
_E5 = np.float32(8.3334519073e-3)
_E6 = np.float32(1.3981999507e-3)
_E7 = np.float32(1.9875691500e-4)
_EXPONENT_BIAS = 127
_MANTISSA_BITS = 23

# Rows of the packed matrices are padded to this many floats, so that vector loops have no scalar remainder.
PAD = LANES
# Number of vectors per matrix product; they share the loads of the matrix.
GROUP = ROWS
# Number of values up to which a matrix stays in the cache, so that all its rows are read together; and the number of
# rows of larger matrices that are read together, few enough for the processor to prefetch all of them.
_CACHED, _DEPTH = 1 << 17, 8
_LINE_BYTES = 64


def pack(matrix: FloatArray) -> FloatArray:
    """Pack a matrix for `affine`: (outputs, inputs) -> (inputs, padded outputs)."""
    outputs, inputs = matrix.shape
    columns = -(-outputs // PAD) * PAD
    # Aligned, so that no load of a register crosses a cache line.
    room = np.zeros(inputs * columns * 4 + _LINE_BYTES, np.uint8)
    start = -room.ctypes.data % _LINE_BYTES
    packed = room[start : start + inputs * columns * 4].view(np.float32).reshape(inputs, columns)
    packed[:, :outputs] = matrix.T
    return packed


def pack_bias(bias: FloatArray) -> FloatArray:
    """Pack a bias for `affine`: (outputs,) -> (padded outputs,)."""
    return pack(bias[:, None])[0]


@kernel
def tanh(x: float) -> float:
    """Return tanh of a float32; see the top of the file."""
    x = _LIMIT if x > _LIMIT else x
    x = -_LIMIT if x < -_LIMIT else x
    u = x * x
    p = (((_P4 * u + _P3) * u + _P2) * u + _P1) * u + _ONE
    q = (((_Q4 * u + _Q3) * u + _Q2) * u + _Q1) * u + _ONE
    return x * p / q


@borrowing_float_kernel
def affine(weights: FloatArray, bias: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """Compute y[g] = bias + weights^T x[g] for g in 0..7; weights (inputs, padded outputs), x (8, inputs)."""
    inputs, outputs = weights.shape
    depth = inputs if inputs * outputs <= _CACHED else _DEPTH
    for k in range(0, inputs, depth):
        add_products(weights, bias, x, y, k, min(k + depth, inputs))


@borrowing_float_kernel
def tanh_all(x: FloatArray) -> None:
    """Apply tanh to a matrix, in place."""
    for g in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[g, i] = tanh(x[g, i])


@borrowing_float_kernel
def exp_all(x: FloatArray, powers: FloatArray, bits: npt.NDArray[np.int32]) -> None:
    """Apply exp to values not above 0, in place; below -87, the result is exp(-87), which is 2e-38.

    Args:
        x: any number of values.
        powers: buffer of the same size.
        bits: the memory of `powers`, as integers.
    """
    for i in range(len(x)):
        value = max(x[i], _LOWEST)
        n = np.int32(value * _LOG2_E - _HALF)
        r = (value - np.float32(n) * _LN2_HIGH) - np.float32(n) * _LN2_LOW
        p = ((((_E7 * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _E2
        bits[i] = (n + _EXPONENT_BIAS) << _MANTISSA_BITS
        x[i] = p * r * r + r + _ONE
    for i in range(len(x)):
        x[i] *= powers[i]


@borrowing_float_kernel
def total(rows: FloatArray, row: int) -> float:
    """Return the sum of a row of `sum_buffer`, by halves; overwrites long rows."""
    length = rows.shape[1]
    whole = SHORTEST_SUM
    while whole < length:
        whole *= 2
    while whole > LONGEST_SUM:
        whole //= 2
        for i in range(length - whole):
            rows[row, i] += rows[row, whole + i]
        length = min(length, whole)
    return sum_by_halves(rows, row, length)


@kernel
def sum_buffer(rows: int, size: int) -> FloatArray:
    """Return zeroed rows for `total` with room for `size` values each; values beyond the size must remain zero."""
    return np.zeros((rows, -(-size // SHORTEST_SUM) * SHORTEST_SUM), np.float32)


@borrowing_float_kernel
def normalise(rows: FloatArray, first: int, last: int, buffer: FloatArray) -> None:
    """Scale the rows first..last-1 to length one; a zero vector stays zero, so that its cosine is 0.

    Args:
        buffer: result of `sum_buffer` with as many rows.
    """
    n = rows.shape[1]
    for row in range(first, last):
        for i in range(n):
            buffer[row - first, i] = rows[row, i] * rows[row, i]
    for row in range(first, last):
        square = total(buffer, row - first)
        if square > _ZERO:
            scale = _ONE / np.sqrt(square)
            for i in range(n):
                rows[row, i] *= scale


@kernel
def project(
    numbers: npt.NDArray[np.integer],
    vectors: FloatArray,
    weights: FloatArray,
    products: FloatArray,
    rows: npt.NDArray[np.integer],
) -> None:
    """Compute products[rows[i]] = weights^T vectors[numbers[i]], with weights packed for `affine`."""
    zero = np.zeros(weights.shape[1], np.float32)
    x = np.zeros((GROUP, vectors.shape[1]), np.float32)
    y = np.zeros((GROUP, weights.shape[1]), np.float32)
    for first in range(0, len(numbers), GROUP):
        used = min(GROUP, len(numbers) - first)
        for g in range(used):
            vector = numbers[first + g]
            for i in range(x.shape[1]):
                x[g, i] = vectors[vector, i]
        affine(weights, zero, x, y)
        for g in range(used):
            row = rows[first + g]
            for i in range(products.shape[1]):
                products[row, i] = y[g, i]


@kernel
def transform(
    offsets: Int64Array,
    weights: FloatArray,
    bias: FloatArray,
    unit: bool,
    encoded: FloatArray,
    transformed: FloatArray,
) -> None:
    """Compute phrase vectors in the other language's space, tanh(W z + b); zero for a phrase without words.

    Args:
        offsets: offsets of the phrases, as in `Phrases`.
        weights, bias: W and b, packed.
        unit: scale both vectors of a phrase to length one.
        encoded: the phrase vectors z, shape (B, n).
        transformed: filled, shape (B, n).
    """
    n = encoded.shape[1]
    # Rows a power of two apart would map to the same cache sets.
    x = np.zeros((GROUP, n + PAD), np.float32)
    y = np.zeros((GROUP, weights.shape[1]), np.float32)
    buffer = sum_buffer(GROUP, n)
    for first in range(0, len(encoded), GROUP):
        used = min(GROUP, len(encoded) - first)
        # Loops instead of slices, whose reference counting would take half of the time.
        for g in range(used):
            for i in range(n):
                x[g, i] = encoded[first + g, i]
        affine(weights, bias, x, y)
        tanh_all(y)
        for g in range(used):
            phrase = first + g
            wordless = offsets[phrase + 1] == offsets[phrase]
            for i in range(n):
                transformed[phrase, i] = _ZERO if wordless else y[g, i]
        if unit:
            normalise(encoded, first, first + used, buffer)
            normalise(transformed, first, first + used, buffer)
