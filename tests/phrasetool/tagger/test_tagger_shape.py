import pytest

from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.tagger_shape import TaggerShape


def test_the_shapes_are_those_of_the_network():
    shape = TaggerShape(11, 4, 3, 2, 5)
    arrays = TaggerNetwork(shape).arrays()
    assert {name: array.shape for name, array in arrays.items()} == shape.array_shapes()


@pytest.mark.parametrize("values", [(1, 4, 3, 1, 5), (9, 0, 3, 1, 5), (9, 4, 3, 1, 0), (9, 4, "3", 1, 5)])
def test_what_makes_no_sense_is_refused(values):
    with pytest.raises(ValueError, match="expected at least"):
        TaggerShape(*values)
