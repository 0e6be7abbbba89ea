import numpy as np
import pytest

from phrasetool.autoencoder.settings import ARCHITECTURES, AutoencoderSettings, TextArchitecture
from phrasetool.options import declared_options
from tests.phrasetool.autoencoder.small_autoencoders import architecture


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "transformer"}, "expected one of mean-max, mean, max, lstm-mean-max, lstm"),
        ({"heads": 3}, "3 heads cannot share 8 hidden units; heads can be 1, 2, 4, 8"),
        ({"name": "lstm", "hidden": 7}, "hidden is 7, expected an even number"),
        ({"word_units": 0}, "word_units is 0, expected at least 2"),
        ({"feed_forward": 0}, "feed_forward is 0, expected at least 1"),
        ({"word_units": 2.5}, "word_units is 2.5, expected at least 2"),
    ],
)
def test_bad_dimensions_are_refused(changes, message):
    settings = {"name": "mean-max", "word_units": 6, "hidden": 8, "heads": 2, "feed_forward": 5, **changes}
    with pytest.raises(ValueError, match=message):
        TextArchitecture(**settings)


def test_dimensions_of_the_architectures():
    sizes = {name: architecture(name).dimension for name in ARCHITECTURES}
    assert sizes == {"mean-max": 16, "mean": 8, "max": 8, "lstm-mean-max": 32, "lstm": 16}


def test_initial_values():
    arrays = architecture("lstm-mean-max", m=40).initial(1000, np.random.default_rng(0))
    assert np.abs(arrays["output"]).max() == pytest.approx((6 / 1041) ** 0.5, rel=0.01)
    assert np.square(arrays["words"]).mean() == pytest.approx(1, rel=0.05)
    assert arrays["decoder.bias_ih_l0"].reshape(4, 40).mean(1).tolist() == [0, 1, 0, 0]
    assert (arrays["gated_gain"] == 1).all()
    assert not arrays["output_bias"].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "rnn"}, "unknown architecture 'rnn'; expected one of mean-max"),
        ({"heads": 5}, "5 heads cannot share 256 hidden units"),
        ({"dropout": 1.0}, "dropout is 1.0, expected at least 0 and less than 1"),
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
        ({"max_length": 600}, "max_length is 600, expected from 1 to 511"),
        ({"precision": "int8"}, "precision is 'int8', expected one of float32, bfloat16"),
        ({"margin": 2}, "autoencoder has no option margin; it takes architecture, "),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AutoencoderSettings.from_options(changes)


def test_the_seed_is_not_an_option():
    assert "seed" not in declared_options(AutoencoderSettings)
    assert AutoencoderSettings.from_options({"epochs": 2}, seed=7).seed == 7
    assert AutoencoderSettings().shape.feed_forward == 256
