import numpy as np
import pytest

from phrasetool.phrase_encoder.kinds import Rae

WORDS = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)


def initial(start, seed=1):
    return Rae().initial(WORDS, 5, start, np.random.default_rng(seed)).arrays()


def test_both_starts_draw_the_same_and_averaging_takes_a_tenth_of_it():
    drawn, averaging = initial("normal"), initial("averaging")
    one = np.eye(5, dtype=np.float32)
    models = {"compose": np.hstack([one, one]) / 2, "reconstruct": np.vstack([one, one]), "transform": one}
    for name, model in models.items():
        np.testing.assert_allclose(averaging[name], model + 0.1 * drawn[name], atol=1e-6)
    for arrays in (drawn, averaging):
        np.testing.assert_array_equal(arrays["word_vectors"], WORDS)
        assert not any(arrays[name].any() for name in arrays if name.endswith("_bias"))


def test_a_word_is_a_phrase():
    assert Rae().word_dimension(50) == 50


def test_parameters_come_back_from_their_arrays():
    arrays = initial("normal")
    again = Rae().parameters({**arrays, "more": WORDS})
    assert all(again.arrays()[name] is array for name, array in arrays.items())
    with pytest.raises(KeyError, match="compose"):
        Rae().parameters({name: array for name, array in arrays.items() if name != "compose"})
