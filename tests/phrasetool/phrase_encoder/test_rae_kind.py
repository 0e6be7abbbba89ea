import numpy as np
import pytest

from phrasetool.phrase_encoder.kinds import Rae

WORDS = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)


def initial(start, seed=1):
    return Rae().initial(WORDS, 5, start, np.random.default_rng(seed)).arrays()


def test_averaging_adds_a_tenth_of_the_normal_draws():
    drawn, averaging = initial("normal"), initial("averaging")
    identity = np.eye(5, dtype=np.float32)
    models = {
        "compose": np.hstack([identity, identity]) / 2,
        "reconstruct": np.vstack([identity, identity]),
        "transform": identity,
    }
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
