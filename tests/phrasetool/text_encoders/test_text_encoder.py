import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.text_encoder import encoded


class Given:
    dimension = 2
    identity = "given"

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, side):
        return self.vectors


def test_vectors_of_the_right_shape_pass():
    found = encoded(Given([[1, 2]]), ["a"], "source", "given")
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2, 3]], r"given: gave an array of shape \(1, 3\), expected 1 vectors of dimension 2"),
        ([[1, 2], [3, 4]], r"shape \(2, 2\)"),
        ([1, 2], r"shape \(2,\)"),
        ([[1, np.nan]], "the vector of 'a' is not finite"),
    ],
)
def test_others_are_refused(vectors, message):
    with pytest.raises(ModelError, match=message):
        encoded(Given(vectors), ["a"], "source", "given")
