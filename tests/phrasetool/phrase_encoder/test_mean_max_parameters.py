import numpy as np
import pytest

from phrasetool.phrase_encoder.kinds import MeanMax
from phrasetool.phrase_encoder.parameters import MeanMaxParameters
from tests.variants import for_each


def good_arrays():
    words = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    kind = MeanMax(word_units=6, heads=2, feed_forward=3)
    return kind.initial(words, 8, "normal", np.random.default_rng(1)).arrays()


@for_each("name", sorted(good_arrays()))
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
