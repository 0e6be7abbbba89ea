import numpy as np
import pytest

from phrasetool.phrase_encoder.kinds import MeanMax
from phrasetool.phrases import Phrases

KIND = MeanMax(word_units=6, heads=2)


def initial(kind, dimension=16, seed=1):
    words = np.random.default_rng(0).normal(size=(40, kind.word_units)).astype(np.float32)
    return kind.initial(words, dimension, "normal", np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_units": 1}, "word_units is 1, expected at least 2"),
        ({"heads": 0}, "heads is 0, expected at least 1"),
        ({"feed_forward": -1}, "feed_forward is -1, expected at least 0"),
        ({"dropout": 1.0}, "dropout is 1.0, expected at least 0 and less than 1"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"layers": "frozen"}, "layers is 'frozen', expected one of fixed, trained"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MeanMax(**options)


@pytest.mark.parametrize("dimension", [0, 15])
def test_the_dimension_must_be_even(dimension):
    assert KIND.word_dimension(16) == 6
    with pytest.raises(ValueError, match=f"an even dimension .*, not {dimension}"):
        KIND.word_dimension(dimension)


def test_feed_forward_units_default_to_the_hidden_units():
    assert initial(KIND).widen.shape == (8, 8)
    assert initial(MeanMax(word_units=6, heads=2, feed_forward=3)).widen.shape == (3, 8)


def test_fixed_layers_put_maxima_and_means_on_both_sides_of_zero():
    fixed, trained = initial(KIND), initial(MeanMax(word_units=6, heads=2, layers="trained"))
    assert not trained.hidden_bias.any()
    for name, array in trained.arrays().items():
        if name != "hidden_bias":
            np.testing.assert_array_equal(array, fixed.arrays()[name])
    rng = np.random.default_rng(3)
    phrases = Phrases.from_lists([rng.integers(0, 40, n).tolist() for n in rng.integers(1, 6, 3000)])
    highest, mean = KIND.pack(fixed).encoder(0).encode(phrases, unit=False)[0].mean(0).reshape(2, 8)
    assert (highest > 0.1).all()
    np.testing.assert_allclose(highest, -mean, atol=0.1)


def test_parameters_must_match_the_options():
    arrays = initial(KIND).arrays()
    assert KIND.parameters(arrays).dimension == 16
    with pytest.raises(ValueError, match="3 heads cannot share 8 hidden units"):
        MeanMax(word_units=6, heads=3).parameters(arrays)
    with pytest.raises(KeyError, match="end"):
        KIND.parameters({name: array for name, array in arrays.items() if name != "end"})
