import pytest

from phrasetool.tagger.settings import TaggerSettings, TaggerShape
from phrasetool.tagger.training import TaggerNetwork
from tests.variants import for_each


def test_the_shapes_are_those_of_the_network():
    shape = TaggerShape(11, 4, 3, 2, 5)
    arrays = TaggerNetwork(shape).arrays()
    assert {name: array.shape for name, array in arrays.items()} == shape.array_shapes()


@pytest.mark.parametrize("values", [(1, 4, 3, 1, 5), (9, 0, 3, 1, 5), (9, 4, 3, 1, 0), (9, 4, "3", 1, 5)])
def test_invalid_shapes_are_refused(values):
    with pytest.raises(ValueError, match="expected at least"):
        TaggerShape(*values)


def test_options_change_the_defaults():
    settings = TaggerSettings.from_options({"units": 7, "epochs": 2}, seed=5)
    assert (settings.units, settings.epochs, settings.seed) == (7, 2, 5)
    assert settings.as_dict()["batch_size"] == TaggerSettings().batch_size
    assert settings.shape(20) == TaggerShape(settings.buckets, settings.word_units, 7, 1, 20)


@for_each(
    ("name", "value"),
    [("epochs", 0), ("dropout", 1.0), ("lower_cased", 1.5), ("learning_rate", 0.0), ("units", 0), ("buckets", 1),
     ("hidden_words", -0.1), ("min_joint", 0), ("clip", 0.0), ("batch_size", 0)],
)  # fmt: skip
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value!r}, expected"):
        TaggerSettings.from_options({name: value})


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="tagger has no option alpha"):
        TaggerSettings.from_options({"alpha": 1})
