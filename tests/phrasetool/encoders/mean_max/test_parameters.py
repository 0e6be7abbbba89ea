import numpy as np
import pytest

from phrasetool.encoders.mean_max.kind import MeanMax
from phrasetool.encoders.mean_max.parameters import LONGEST, MeanMaxParameters, check_lengths, positions
from phrasetool.errors import LengthError


def test_positions_are_those_of_the_paper():
    table = positions(3, 4)
    assert table.shape == (3, 4)
    expected = [np.sin(2), np.cos(2), np.sin(2 / 100), np.cos(2 / 100)]
    np.testing.assert_allclose(table[1], expected, rtol=1e-6)


def good_arrays():
    words = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    kind = MeanMax(word_units=6, heads=2, feed_forward=3)
    return kind.initial(words, 8, "normal", np.random.default_rng(1)).arrays()


@pytest.mark.parametrize("name", good_arrays())
def test_parameters_are_checked(name):
    good = good_arrays()
    parameters = MeanMaxParameters(**good)
    assert (parameters.hidden, parameters.dimension) == (4, 8)
    array = good[name]
    with pytest.raises(ValueError, match="expected float32"):
        MeanMaxParameters(**{**good, name: array.astype(np.float64)})
    with pytest.raises(ValueError, match="expected float32"):
        MeanMaxParameters(**{**good, name: array[..., :-1]})
    broken = array.copy()
    broken[0] = np.inf
    with pytest.raises(ValueError, match=f"^{name} holds values that are not finite"):
        MeanMaxParameters(**{**good, name: broken})


def test_lengths_up_to_the_longest_pass():
    check_lengths(np.array([0, LONGEST]))
    check_lengths(np.zeros(0, np.int64))
    with pytest.raises(LengthError, match=f"a phrase of {LONGEST + 1} words is longer than the {LONGEST}"):
        check_lengths(np.array([3, LONGEST + 1, 2]))
