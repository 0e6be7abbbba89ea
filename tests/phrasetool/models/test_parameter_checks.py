import numpy as np
import pytest

from phrasetool.models.saved_model import check_arrays

SHAPES = {"matrix": (2, 3), "bias": (2,)}


def arrays(**changes):
    return {"matrix": np.ones((2, 3), np.float32), "bias": np.zeros(2, np.float32), **changes}


def test_valid_arrays_pass_and_additional_arrays_are_ignored():
    check_arrays(arrays(more=np.array(["text"])), SHAPES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matrix": np.ones((3, 2), np.float32)}, r"^matrix is float32 \(3, 2\), expected float32 \(2, 3\)$"),
        ({"bias": np.zeros((2, 1), np.float32)}, r"^bias is float32 \(2, 1\), expected float32 \(2,\)$"),
        ({"bias": np.zeros(2)}, r"^bias is float64 \(2,\), expected float32 \(2,\)$"),
        ({"bias": np.array([0, np.inf], np.float32)}, "^bias holds values that are not finite$"),
        ({"matrix": np.full((2, 3), np.nan, np.float32)}, "^matrix holds values that are not finite$"),
    ],
)
def test_the_invalid_array_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_arrays(arrays(**changes), SHAPES)


def test_a_missing_array():
    with pytest.raises(KeyError, match="bias"):
        check_arrays({"matrix": arrays()["matrix"]}, SHAPES)
