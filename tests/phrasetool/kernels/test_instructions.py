"""Processor instructions in kernels: prefetching, and sums of products compared with NumPy."""

import pickle

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from phrasetool.kernels import building, instructions, jit
from phrasetool.kernels.instructions import LANES, ROWS, Intrinsic, add_products, prefetch
from phrasetool.kernels.processors import ANY, AVX2, compiling_for, this_processor


def test_the_module_of_an_intrinsic_is_watched(monkeypatch):
    name = instructions.__name__
    assert name in building._modules_of_kernels()
    monkeypatch.setattr(jit, "_watched", {})
    Intrinsic(name, "of this name", lambda *_: None)
    assert jit._watched == {name: jit.checksum(instructions.__file__)}


def test_intrinsics_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(instructions.add_products)) is instructions.add_products
    assert pickle.loads(pickle.dumps(instructions.prefetch)) is instructions.prefetch


@njit
def _of_vector(array, index):
    prefetch(array, index)
    return array[0]


@njit
def _of_matrix(array, row, column):
    prefetch(array, (row, column))
    return array[0, 0]


def test_prefetch_is_compiled_to_the_instruction():
    """The compiled code has the instruction, for items of every size."""
    for dtype in (np.uint8, np.int32, np.float64):
        assert _of_vector(np.arange(5, dtype=dtype), 3) == 0
        code = next(text for kinds, text in _of_vector.inspect_llvm().items() if str(np.dtype(dtype)) in str(kinds[0]))
        assert "llvm.prefetch" in code
    assert _of_matrix(np.zeros((3, 4), np.float32), np.int32(2), 1) == 0
    assert "llvm.prefetch" in next(iter(_of_matrix.inspect_llvm().values()))


@pytest.mark.parametrize("index", [-1, 5, 10**12, -(10**12)])
def test_prefetch_reads_nothing(index):
    """Indices beyond the ends are harmless, where a load would crash the process."""
    assert _of_vector(np.arange(5), index) == 0
    assert _of_matrix(np.ones((2, 3)), index, index) == 1


def test_prefetch_requires_contiguous_arrays_and_integer_indices():
    for arguments in ((np.arange(6)[::2], 1), (np.arange(6), 1.5), (np.zeros((2, 3)), 1)):
        with pytest.raises(TypingError):
            _of_vector(*arguments)
    for bad in (np.zeros((2, 3)).T, np.zeros(3)):
        with pytest.raises(TypingError):
            _of_matrix(bad, 0, 0)


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
    # Columns outside [begin, end) are not read.
    x = np.full((ROWS, end + 3), np.nan, np.float32)
    x[:, begin:end] = rng.normal(size=(ROWS, end - begin))
    y = rng.normal(size=(ROWS, columns)).astype(np.float32)
    bias = rng.normal(size=columns).astype(np.float32)
    result, expected = y.copy(), y.copy()
    with compiling_for(processor):
        add(weights, bias, x, result, begin, end)
    _plain_loop(weights, bias, x, expected, begin, end)
    np.testing.assert_array_equal(result, expected)
    exact = (y if begin else bias) + x[:, begin:end].astype(np.float64) @ weights[begin:end]
    np.testing.assert_allclose(result, exact, atol=1e-4)


def test_sums_require_contiguous_rows_of_float32():
    good = np.zeros((ROWS, LANES), np.float32)
    for bad in (good.astype(np.float64), good.T, good[:, ::2], good[0]):
        for arguments in ((bad, good[0], good, good), (good, good[0], bad, good), (good, good[0], good, bad)):
            with pytest.raises(TypingError):
                _add(*arguments, 0, 1)
    for bad in (good, good[0].astype(np.float64), good[0, ::2]):
        with pytest.raises(TypingError):
            _add(good, bad, good, good, 0, 1)
