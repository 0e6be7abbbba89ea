import numpy as np

from phrasetool.encoders.mean_max.parameters import positions


def test_positions_are_those_of_the_paper():
    table = positions(3, 4)
    assert table.shape == (3, 4)
    expected = [np.sin(2), np.cos(2), np.sin(2 / 100), np.cos(2 / 100)]
    np.testing.assert_allclose(table[1], expected, rtol=1e-6)
