import numpy as np

from phrasetool.smt.extraction.reordering import reordering_probabilities


def test_reordering_probabilities():
    made = reordering_probabilities(np.array([[3, 0, 0, 0, 1, 2], [0] * 6]))
    np.testing.assert_allclose(made[0], np.array([3.5, 0.5, 0.5, 0.5, 1.5, 2.5]) / 4.5)
    np.testing.assert_allclose(made[1], 1 / 3)
