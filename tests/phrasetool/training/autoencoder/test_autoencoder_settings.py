import pytest

from phrasetool.options import declared_options
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings


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


def test_the_seed_is_no_option():
    assert "seed" not in declared_options(AutoencoderSettings)
    assert AutoencoderSettings.from_options({"epochs": 2}, seed=7).seed == 7
    assert AutoencoderSettings().shape.feed_forward == 256
