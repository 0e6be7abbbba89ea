import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from phrasetool.kernels.multiply_add import LANES, ROWS, add_products
from phrasetool.kernels.processors import ANY, AVX2, compiling_for, this_processor


@njit
def _add(weights, bias, x, y, begin, end):
    add_products(weights, bias, x, y, begin, end)


@njit
def _add_by_halves(weights, bias, x, y, begin, end):
    add_products(weights, bias, x, y, begin, end)


@njit
def _add_by_quarters(weights, bias, x, y, begin, end):
    add_products(weights, bias, x, y, begin, end)


@njit(fastmath={"contract"}, error_model="numpy")
def _plain_loop(weights, bias, x, y, begin, end):
    if begin == 0:
        y[:] = bias
    for k in range(begin, end):
        for row in range(len(y)):
            for c in range(y.shape[1]):
                y[row, c] += x[row, k] * weights[k, c]


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 1), (1, 3), (0, 50), (17, 300)])
@pytest.mark.parametrize(
    ("add", "processor"), [(_add, this_processor()), (_add_by_halves, AVX2), (_add_by_quarters, ANY)]
)
def test_sums_have_the_bits_of_the_plain_loop(begin, end, add, processor):
    for columns in (LANES, 2 * LANES, 3 * LANES, 9 * LANES):
        check_sums(begin, end, columns, add, processor)


def check_sums(begin, end, columns, add, processor):
    rng = np.random.default_rng(end)
    weights = rng.normal(size=(end + 2, columns)).astype(np.float32)
    # What stands outside is not read.
    x = np.full((ROWS, end + 3), np.nan, np.float32)
    x[:, begin:end] = rng.normal(size=(ROWS, end - begin))
    y = rng.normal(size=(ROWS, columns)).astype(np.float32)
    bias = rng.normal(size=columns).astype(np.float32)
    found, expected = y.copy(), y.copy()
    with compiling_for(processor):
        add(weights, bias, x, found, begin, end)
    _plain_loop(weights, bias, x, expected, begin, end)
    np.testing.assert_array_equal(found, expected)
    exact = (y if begin else bias) + x[:, begin:end].astype(np.float64) @ weights[begin:end]
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_only_rows_of_float32_one_behind_the_other():
    good = np.zeros((ROWS, LANES), np.float32)
    for bad in (good.astype(np.float64), good.T, good[:, ::2], good[0]):
        for arguments in ((bad, good[0], good, good), (good, good[0], bad, good), (good, good[0], good, bad)):
            with pytest.raises(TypingError):
                _add(*arguments, 0, 1)
    for bad in (good, good[0].astype(np.float64), good[0, ::2]):
        with pytest.raises(TypingError):
            _add(good, bad, good, good, 0, 1)
