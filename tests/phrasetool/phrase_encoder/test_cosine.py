import numpy as np
import pytest

from phrasetool.phrase_encoder.scoring import pair_cosines
from tests import naive


@pytest.mark.parametrize("n", [1, 3, 4, 10, 50])
def test_pair_cosines_agree_with_naive(n):
    rng = np.random.default_rng(n)

    def vectors(count):
        rows = rng.normal(size=(count, n)).astype(np.float32)
        rows[0] = 0
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30).astype(np.float32)

    source, target = (vectors(6), vectors(6)), (vectors(8), vectors(8))
    s, t = rng.integers(0, 6, 40), rng.integers(0, 8, 40)
    result = pair_cosines(s, t, source, target)
    assert result.dtype == np.float32
    for i in range(40):
        expected = [naive.cosine(source[1][s[i]], target[0][t[i]]), naive.cosine(target[1][t[i]], source[0][s[i]])]
        np.testing.assert_allclose(result[i], expected, atol=1e-6)
    assert np.abs(result).max() <= 1


def test_pair_cosines_check_their_arguments():
    v = np.zeros((2, 3), np.float32)
    index = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="float32"):
        pair_cosines(index, index, (v, v), (v, v.astype(np.float64)))
    with pytest.raises(ValueError, match="one dimension"):
        pair_cosines(index, index, (v, v), (v, v[:, :2]))
    with pytest.raises(ValueError, match="2 source and 1 target"):
        pair_cosines(index, index[:1], (v, v), (v, v))
    for bad in (-1, 2):
        with pytest.raises(ValueError, match="outside"):
            pair_cosines(index, np.array([0, bad]), (v, v), (v, v))
