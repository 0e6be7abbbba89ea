import numpy as np
import pytest

from phrasetool.syntax.syntax_shape import SyntaxShape

SHAPE = SyntaxShape(9, 2, 4, 3, 2, 5, 2, 7, 40)


def test_sizes_of_the_paper():
    paper = SyntaxShape(40000, 6, 100, 128, 2, 100, 20, 512, 240)
    shapes = paper.array_shapes()
    assert shapes["start.weight"] == (1024, 1024)
    assert shapes["decoder.weight_ih_l0"] == (2048, 376)
    assert shapes["encoder.1.weight_ih_l0_reverse"] == (512, 256)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == pytest.approx(7.5e6, rel=0.02)
    assert paper.dimension == 256


def test_initial_values_fit_and_depend_on_the_seed():
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
