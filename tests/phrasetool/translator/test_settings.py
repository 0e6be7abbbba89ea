import re

import pytest

from phrasetool.translator.settings import SOFTMAX_LOSSES, NeuralSettings, losses


def test_every_loss_makes_settings_and_what_they_say_comes_back():
    found = losses()
    assert {"syn-projection", "syn-difference", "vmf", "sampled", "most-informative", "cosine"} <= set(found)
    assert set(SOFTMAX_LOSSES) <= set(found)
    assert "max-margin" not in found
    for loss in found:
        settings = NeuralSettings.from_options({"units": 8}, loss=loss, seed=3)
        assert (settings.loss, settings.seed, settings.architecture.units) == (loss, 3, 8)
        assert (settings.objective is None) == (loss in SOFTMAX_LOSSES) == (not settings.architecture.continuous)
        assert NeuralSettings(**settings.as_dict()) == settings


def test_wishes_of_a_translator_give_way_to_what_is_asked_for():
    assert NeuralSettings(loss="vmf").loss_options["length_weight"] == 0.02
    assert NeuralSettings().loss_options == {"margin": 0.25}
    assert NeuralSettings.from_options({"margin": 0.5}, loss="syn-projection").loss_options == {"margin": 0.5}


def test_presets_give_sizes():
    assert NeuralSettings(preset="lstm").architecture.units == 1024
    assert NeuralSettings(preset="lstm", units=64).architecture.units == 64
    assert NeuralSettings(preset="transformer").architecture.feed_forward == 256


@pytest.mark.parametrize(
    ("options", "loss", "message"),
    [
        ({}, "max-margin", "unknown loss 'max-margin' of a translator"),
        ({"margin": 1.0}, "cross-entropy", "cross-entropy has no option margin"),
        ({"negatives": 2}, "syn-projection", "negatives"),
        ({"preset": "rnn"}, "cosine", "preset is 'rnn', expected one of lstm, gru, transformer"),
        ({"epochs": 0}, "cosine", "epochs is 0, expected at least 1"),
        ({"dropout": 1.0}, "cosine", "dropout is 1.0"),
        ({"learning_rate": 0.0}, "cosine", "learning_rate is 0.0, expected more than 0"),
        ({"max_length": 512}, "cosine", "max_length is 512, expected from 1 to 511"),
        ({"units": 7}, "cosine", "an even number"),
        ({"units": -2}, "cosine", "units is -2, expected at least 0"),
        ({"schedule": "cosine"}, "cosine", "schedule is 'cosine'"),
    ],
)
def test_settings_that_cannot_be(options, loss, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        NeuralSettings.from_options(options, loss=loss)
    with pytest.raises(ValueError, match="seed is"):
        NeuralSettings(seed=1 << 32)
