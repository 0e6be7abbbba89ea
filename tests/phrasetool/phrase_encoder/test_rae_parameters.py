import numpy as np
import pytest

from phrasetool.phrase_encoder.parameters import RaeParameters
from tests.conftest import random_parameters


def test_parameters_are_checked():
    good = random_parameters(3, 4, 0).arrays()
    RaeParameters(**good)
    for name, array in good.items():
        swapped = np.ascontiguousarray(array.T) if array.ndim == 2 and array.shape[0] != array.shape[1] else array[:-1]
        with pytest.raises(ValueError, match="expected float32"):
            RaeParameters(**{**good, name: swapped})
        with pytest.raises(ValueError, match="expected float32"):
            RaeParameters(**{**good, name: array.astype(np.float64)})
        broken = array.copy()
        broken[0] = np.nan
        with pytest.raises(ValueError, match="not finite"):
            RaeParameters(**{**good, name: broken})
