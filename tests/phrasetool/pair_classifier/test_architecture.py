import pytest

from phrasetool.pair_classifier.architecture import PRESETS, SiameseArchitecture
from tests.parallel_models import SMALL


def test_sizes():
    made = SiameseArchitecture(**SMALL)
    assert (made.dimension, made.joined) == (12, 16)
    for changes, sizes in (
        ({"cell": "gru"}, (12, 16)), ({"cell": "lstm"}, (6, 10)), ({"length": "none"}, (12, 12)),
        ({"length": "add"}, (12, 12)), ({"length": "shared"}, (12, 16)),
    ):  # fmt: skip
        made = SiameseArchitecture(**{**SMALL, **changes})
        assert (made.dimension, made.joined) == sizes


def test_the_papers_sizes():
    assert PRESETS["paper"] == {"word_units": 512, "units": 256, "hidden": 256}


@pytest.mark.parametrize(
    ("name", "value"),
    [("inputs", "pieces"), ("layer", "first"), ("cell", "rnn"), ("length", "yes"), ("units", 0), ("characters", -1),
     ("longest", 0), ("hidden", 0), ("word_units", 0), ("length_units", 0)],
)  # fmt: skip
def test_what_it_cannot_be(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, expected"):
        SiameseArchitecture(**{**SMALL, name: value})
