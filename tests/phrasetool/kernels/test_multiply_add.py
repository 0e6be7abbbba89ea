import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from phrasetool.kernels.multiply_add import LANES, ROWS, add_products


@njit
def _add(weights, x, y, first):
    add_products(weights, x, y, first)


@njit(fastmath={"contract"}, error_model="numpy")
def _plain_loop(weights, x, y, first):
    for k in range(len(weights)):
        for row in range(len(y)):
            for column in range(first, first + LANES):
                y[row, column] += x[row, k] * weights[k, column]


@pytest.mark.parametrize("inputs", [0, 1, 2, 7, 50, 300])
@pytest.mark.parametrize("columns", [LANES, 3 * LANES])
def test_sums_have_the_bits_of_the_plain_loop(inputs, columns):
    rng = np.random.default_rng(inputs)
    weights = rng.normal(size=(inputs, columns)).astype(np.float32)
    # Longer rows than there are inputs: what stands behind them is not read.
    x = np.full((ROWS, inputs + 3), np.nan, np.float32)
    x[:, :inputs] = rng.normal(size=(ROWS, inputs))
    y = rng.normal(size=(ROWS, columns)).astype(np.float32)
    for first in range(0, columns, LANES):
        found, expected = y.copy(), y.copy()
        _add(weights, x, found, first)
        _plain_loop(weights, x, expected, first)
        np.testing.assert_array_equal(found, expected)
        exact = y.astype(np.float64)
        exact[:, first : first + LANES] += x[:, :inputs].astype(np.float64) @ weights[:, first : first + LANES]
        np.testing.assert_allclose(found, exact, atol=1e-4)


def test_only_rows_of_float32_one_behind_the_other():
    good = np.zeros((ROWS, LANES), np.float32)
    for bad in (good.astype(np.float64), good.T, good[:, ::2], good[0]):
        for arguments in ((bad, good, good), (good, bad, good), (good, good, bad)):
            with pytest.raises(TypingError):
                _add(*arguments, 0)
