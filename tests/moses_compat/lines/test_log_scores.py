"""Scores as the decoder sees them against Python's logarithm."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.log_scores import log_scores
from phrasetool.errors import DataError


@given(st.lists(st.tuples(st.floats(0, 3e38), st.floats(0, 1)), max_size=20))
def test_natural_logarithms_with_a_floor(rows):
    values = np.array(rows).reshape(-1, 2)
    found = log_scores("t", values, np.arange(len(rows)))
    assert (found.dtype, found.shape) == (np.float32, values.shape)
    # As Moses does, of the score in single precision.
    expected = [[max(math.log(x), -100.0) if x else -100.0 for x in row] for row in values.astype(np.float32).tolist()]
    np.testing.assert_allclose(found, np.array(expected).reshape(-1, 2), rtol=2e-6, atol=1e-7)


def test_the_smallest_scores_are_minus_100():
    assert log_scores("t", np.array([[0.0, 1e-44, 1e-60, 1.0]]), np.zeros(1, np.int64)).tolist() == [[-100.0] * 3 + [0]]


@pytest.mark.parametrize(("score", "message"), [(-1e-9, "is negative"), (math.inf, "is infinite"), (3.5e38, "is inf")])
def test_what_has_no_logarithm_is_named_by_its_line(score, message):
    values = np.full((3, 2), 0.5)
    values[1, 1] = values[2, 0] = score
    with pytest.raises(DataError, match=f"^t:42: a score {message}"):
        log_scores("t", values, np.array([7, 41, 99]))
