import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from phrasetool.kernels.prefetching import prefetch


@njit
def _of_vector(array, index):
    prefetch(array, index)
    return array[0]


@njit
def _of_matrix(array, row, column):
    prefetch(array, (row, column))
    return array[0, 0]


def test_the_line_of_the_element_is_asked_for():
    """One instruction, scaled by the size of an item."""
    for dtype in (np.uint8, np.int32, np.float64):
        assert _of_vector(np.arange(5, dtype=dtype), 3) == 0
        code = next(text for kinds, text in _of_vector.inspect_llvm().items() if str(np.dtype(dtype)) in str(kinds[0]))
        assert "llvm.prefetch" in code
    assert _of_matrix(np.zeros((3, 4), np.float32), np.int32(2), 1) == 0
    assert "llvm.prefetch" in next(iter(_of_matrix.inspect_llvm().values()))


@pytest.mark.parametrize("index", [-1, 5, 10**12, -(10**12)])
def test_nothing_is_read(index):
    """Beyond the ends, where a load would end the process."""
    assert _of_vector(np.arange(5), index) == 0
    assert _of_matrix(np.ones((2, 3)), index, index) == 1


def test_only_of_contiguous_arrays_by_whole_indices():
    for arguments in ((np.arange(6)[::2], 1), (np.arange(6), 1.5), (np.zeros((2, 3)), 1)):
        with pytest.raises(TypingError):
            _of_vector(*arguments)
    for bad in (np.zeros((2, 3)).T, np.zeros(3)):
        with pytest.raises(TypingError):
            _of_matrix(bad, 0, 0)
