"""Kernels of every kind, for the tests of their compilation."""

from typing import NamedTuple

import numpy as np

from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel, kernel


class Pair(NamedTuple):
    keys: np.ndarray
    scale: float


@inner_kernel
def doubled(value):
    return value + value


@borrowing_kernel
def first_key(pair):
    return pair.keys[0]


@kernel
def dot(left, right):
    total = np.float32(0)
    for i in range(len(left)):
        total += left[i] * right[i]
    return total


@exact_kernel
def count_nan(values, limit):
    if limit < 0:
        raise ValueError("a limit below 0")
    count = 0
    for value in values:
        count += value != value
    return min(count, limit), doubled(count)


@exact_kernel
def scaled_keys(pair, shift):
    return (pair.keys + shift) * pair.scale + first_key(pair)


@exact_kernel
def total(values, start, shape, negative):
    result = doubled(start) + shape[0] * shape[1]
    for value in values.flat:
        result += value
    return -result if negative else result
