import pytest

from phrasetool.pair_classifier.settings import PRESETS, PairClassifierArchitecture, PairClassifierSettings
from tests.parallel_models import SMALL
from tests.variants import for_each


def test_the_preset_of_the_paper():
    settings = PairClassifierSettings.from_options({"preset": "paper"})
    assert settings.sizes == {"word_units": 512, "units": 256, "hidden": 256}
    result = settings.as_dict()
    expected = {"batch_size": 128, "dropout": 0.2, "learning_rate": 0.0001, "epochs": 15, "negatives": 5, "clip": 5.0,
                "containment": 0, "contrast": 0.0, "characters": 0, "hidden_words": 0.0}  # fmt: skip
    assert {name: result[name] for name in expected} == expected
    assert PairClassifierSettings.from_options({"preset": "paper", "epochs": 3}).epochs == 3


def test_explicit_sizes():
    settings = PairClassifierSettings.from_options({"units": 7})
    assert settings.sizes == {"word_units": 128, "units": 7, "hidden": 128}
    assert settings.architecture().word_units == 128
    # The encoder in the folder determines the size of the word vectors.
    folder = PairClassifierSettings.from_options({"layer": "static"}, encoder="hf:some/bert", tuned=True, seed=5)
    assert folder.folder == "some/bert"
    assert folder.seed == 5
    architecture = folder.architecture(16)
    assert (architecture.word_units, architecture.inputs, architecture.layer) == (16, "folder", "static")
    assert (architecture.tuned, architecture.characters) == (True, 0)
    assert not PairClassifierSettings(tuned=True).architecture().tuned


@for_each(
    ("options", "message"),
    [
        ({"preset": "large"}, "preset is 'large', expected one of small, paper"),
        ({"schedule": "steps"}, "schedule"),
        ({"cell": "rnn"}, "cell is 'rnn', expected one of bilstm, lstm, gru"),
        ({"length": "yes"}, "length is 'yes', expected one of none, concat, add, shared"),
        ({"layer": "last"}, "layer"),
        ({"precision": "int8"}, "precision is 'int8', expected one of float32, bfloat16"),
        ({"negatives": 0, "containment": 0}, "negatives is 0, expected at least 1 without containment"),
        ({"negatives": -1}, "negatives is -1, expected at least 0"),
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"hidden_words": -0.1}, "hidden_words"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
        ({"contrast_temperature": 0.0}, "contrast_temperature"),
        ({"max_length": 0}, "max_length"),
        ({"shape": 1}, "parallel has no option shape"),
    ],
)
def test_invalid_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PairClassifierSettings.from_options(options)


@pytest.mark.parametrize("encoder", ["bert", "hf:", "rae"])
def test_unknown_encoders_are_refused(encoder):
    with pytest.raises(ValueError, match="expected words, word2vec or hf:FOLDER"):
        PairClassifierSettings(encoder=encoder)


def test_sizes():
    architecture = PairClassifierArchitecture(**SMALL)
    assert (architecture.dimension, architecture.joined) == (12, 16)
    for changes, sizes in (
        ({"cell": "gru"}, (12, 16)), ({"cell": "lstm"}, (6, 10)), ({"length": "none"}, (12, 12)),
        ({"length": "add"}, (12, 12)), ({"length": "shared"}, (12, 16)),
    ):  # fmt: skip
        architecture = PairClassifierArchitecture(**{**SMALL, **changes})
        assert (architecture.dimension, architecture.joined) == sizes


def test_the_sizes_of_the_paper():
    assert PRESETS["paper"] == {"word_units": 512, "units": 256, "hidden": 256}


@for_each(
    ("name", "value"),
    [("inputs", "pieces"), ("layer", "first"), ("cell", "rnn"), ("length", "yes"), ("units", 0), ("characters", -1),
     ("longest", 0), ("hidden", 0), ("word_units", 0), ("length_units", 0)],
)  # fmt: skip
def test_invalid_architectures_are_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, expected"):
        PairClassifierArchitecture(**{**SMALL, name: value})
