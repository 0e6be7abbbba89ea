import numpy as np
import pytest

from phrasetool.errors import LengthError
from phrasetool.nn.positions import LONGEST, check_lengths, positions


def test_positions_are_those_of_the_paper():
    table = positions(3, 4)
    assert table.shape == (3, 4)
    expected = [np.sin(2), np.cos(2), np.sin(2 / 100), np.cos(2 / 100)]
    np.testing.assert_allclose(table[1], expected, rtol=1e-6)


def test_lengths_up_to_the_longest_pass():
    check_lengths(np.array([0, LONGEST]))
    check_lengths(np.zeros(0, np.int64))
    with pytest.raises(LengthError, match=f"a text of {LONGEST + 1} words is longer than the {LONGEST}"):
        check_lengths(np.array([3, LONGEST + 1, 2]))
