import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from phrasetool.kernels.multiply_add import LANES, ROWS, add_products


@njit
def _add(weights, x, y, begin, end, column):
    add_products(weights, x, y, begin, end, column)


@njit(fastmath={"contract"}, error_model="numpy")
def _plain_loop(weights, x, y, begin, end, column):
    for k in range(begin, end):
        for row in range(len(y)):
            for c in range(column, column + LANES):
                y[row, c] += x[row, k] * weights[k, c]


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 1), (1, 3), (0, 50), (17, 300)])
@pytest.mark.parametrize("columns", [LANES, 3 * LANES])
def test_sums_have_the_bits_of_the_plain_loop(begin, end, columns):
    rng = np.random.default_rng(end)
    weights = rng.normal(size=(end + 2, columns)).astype(np.float32)
    # What stands outside is not read.
    x = np.full((ROWS, end + 3), np.nan, np.float32)
    x[:, begin:end] = rng.normal(size=(ROWS, end - begin))
    y = rng.normal(size=(ROWS, columns)).astype(np.float32)
    for column in range(0, columns, LANES):
        found, expected, touched = y.copy(), y.copy(), slice(column, column + LANES)
        _add(weights, x, found, begin, end, column)
        _plain_loop(weights, x, expected, begin, end, column)
        np.testing.assert_array_equal(found, expected)
        exact = y.astype(np.float64)
        exact[:, touched] += x[:, begin:end].astype(np.float64) @ weights[begin:end, touched]
        np.testing.assert_allclose(found, exact, atol=1e-4)


def test_only_rows_of_float32_one_behind_the_other():
    good = np.zeros((ROWS, LANES), np.float32)
    for bad in (good.astype(np.float64), good.T, good[:, ::2], good[0]):
        for arguments in ((bad, good, good), (good, bad, good), (good, good, bad)):
            with pytest.raises(TypingError):
                _add(*arguments, 0, 1, 0)
