import numpy as np
import pytest

from phrasetool.syntax.settings import SIZES, SyntaxSettings, SyntaxShape

SHAPE = SyntaxShape(9, 2, 4, 3, 2, 5, 2, 7, 40)


def test_sizes_of_the_paper():
    paper = SyntaxShape(40000, 6, 100, 128, 2, 100, 20, 512, 240)
    shapes = paper.array_shapes()
    assert shapes["start.weight"] == (1024, 1024)
    assert shapes["decoder.weight_ih_l0"] == (2048, 376)
    assert shapes["encoder.1.weight_ih_l0_reverse"] == (512, 256)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == pytest.approx(7.5e6, rel=0.02)
    assert paper.dimension == 256


def test_shapes_of_initial_values_and_dependence_on_the_seed():
    arrays = SHAPE.initial_arrays(1)
    assert {name: array.shape for name, array in arrays.items()} == SHAPE.array_shapes()
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    assert not arrays["pieces.weight"][0].any()
    assert (SHAPE.initial_arrays(1)["decoder.bias_hh_l0"] == arrays["decoder.bias_hh_l0"]).all()
    assert (SHAPE.initial_arrays(2)["decoder.bias_hh_l0"] != arrays["decoder.bias_hh_l0"]).any()
    assert np.abs(arrays["encoder.0.weight_ih_l0"]).max() <= 3**-0.5


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True])
def test_sizes_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="units is"):
        SyntaxShape(9, 2, 4, wrong, 2, 5, 2, 7, 40)


def test_explicit_values_override_the_preset():
    paper = SyntaxSettings.from_options({"preset": "paper", "batch_size": 7}, own_language=True, max_length=50, seed=3)
    assert (paper.pieces, paper.decoder_units, paper.learning_rate, paper.schedule) == (40000, 512, 1e-4, "constant")
    assert (paper.batch_size, paper.own_language, paper.max_length, paper.seed) == (7, True, 50, 3)
    preset_only = SyntaxSettings.from_options({"preset": "paper"})
    assert (preset_only.own_language, preset_only.decoder_dropout, preset_only.dropout) == (False, False, 0.2)
    assert SyntaxSettings.from_options({}).as_dict() == SyntaxSettings().as_dict()
    assert SyntaxSettings.from_options({}).max_length == 60


def test_shape():
    shape = SyntaxSettings(max_length=10).shape(500, 3)
    assert (shape.pieces, shape.languages, shape.longest, shape.units) == (500, 3, 40, 128)
    assert {name for name in SIZES if name != "pieces"} < set(vars(shape))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preset": "large"}, "preset is 'large', expected one of fast, paper"),
        ({"schedule": "up"}, "schedule is 'up', expected one of constant, linear"),
        ({"dropout": 1.0}, "dropout is 1.0, expected at least 0 and less than 1"),
        ({"patience": 0}, "patience is 0, expected at least 1"),
        ({"min_length": 61}, "min_length is 61, expected at most 60"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
        ({"units": 0}, "units is 0, expected at least 1"),
        ({"depth": 1}, "syntax has no option depth"),
    ],
)
def test_values_out_of_range_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        SyntaxSettings.from_options(options)
