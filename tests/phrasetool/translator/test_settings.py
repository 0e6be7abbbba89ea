import re
from dataclasses import replace

import pytest

from phrasetool.translator.settings import PRESETS, SOFTMAX_LOSSES, TranslatorArchitecture, TranslatorSettings, losses
from tests.phrasetool.translator.small_translators import architecture
from tests.variants import for_each


def test_every_loss_has_settings_that_round_trip():
    result = losses()
    assert {"syn-projection", "syn-difference", "vmf", "sampled", "most-informative", "cosine"} <= set(result)
    assert set(SOFTMAX_LOSSES) <= set(result)
    assert "max-margin" not in result
    for loss in result:
        settings = TranslatorSettings.from_options({"units": 8}, loss=loss, seed=3)
        assert (settings.loss, settings.seed, settings.architecture.units) == (loss, 3, 8)
        assert (settings.objective is None) == (loss in SOFTMAX_LOSSES) == (not settings.architecture.continuous)
        assert TranslatorSettings(**settings.as_dict()) == settings


def test_explicit_loss_options_override_those_of_the_translator():
    assert TranslatorSettings(loss="vmf").loss_options["length_weight"] == 0.02
    assert TranslatorSettings().loss_options == {"margin": 0.25}
    assert TranslatorSettings.from_options({"margin": 0.5}, loss="syn-projection").loss_options == {"margin": 0.5}


def test_margins_follow_the_targets():
    lstm = TranslatorSettings.from_options({"preset": "lstm"})
    assert (lstm.centring, lstm.loss_options) == ("plain", {"margin": 0.5})
    assert TranslatorSettings(centring="plain").loss_options == {"margin": 0.5}
    assert TranslatorSettings.from_options({"preset": "lstm", "centring": "centred"}).loss_options == {"margin": 0.25}
    explicit = TranslatorSettings.from_options({"preset": "lstm", "margin": 0.75}, loss="syn-projection")
    assert explicit.loss_options == {"margin": 0.75}


def test_presets_give_sizes():
    assert TranslatorSettings(preset="lstm").architecture.units == 1024
    assert TranslatorSettings(preset="lstm", units=64).architecture.units == 64
    assert TranslatorSettings(preset="transformer").architecture.feed_forward == 256


@for_each(
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
def test_invalid_settings_are_refused(options, loss, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TranslatorSettings.from_options(options, loss=loss)
    with pytest.raises(ValueError, match="seed is"):
        TranslatorSettings(seed=1 << 32)


def test_presets_are_architectures_and_the_first_is_the_paper_s():
    architectures = {
        name: TranslatorArchitecture(**sizes, heads=4, feed_forward=8, dimension=300) for name, sizes in PRESETS.items()
    }
    paper = architectures["lstm"]
    assert (paper.units, paper.layers, paper.word_units, paper.input_feeding) == (1024, 2, 512, True)
    assert not architectures["transformer"].recurrent
    assert architectures["gru"].continuous
    assert not replace(architectures["gru"], output="softmax").continuous


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("gru", {"cell": "rnn"}, "cell is 'rnn', expected one of lstm, gru, transformer"),
        ("gru", {"output": "words"}, "output is 'words'"),
        ("gru", {"units": 7}, "an even number"),
        ("gru", {"dimension": 1}, "dimension is 1, expected at least 2"),
        ("lstm", {"layers": 0}, "layers is 0"),
        ("transformer", {"heads": 4}, "units (6) must be divisible by heads (4)"),
        ("transformer", {"input_feeding": True}, "does not support input feeding"),
    ],
)
def test_invalid_architectures_are_refused(kind, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(architecture(kind), **changes)
