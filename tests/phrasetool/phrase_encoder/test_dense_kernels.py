import numpy as np
import pytest

from phrasetool.phrase_encoder.dense_kernels import (
    GROUP,
    PAD,
    affine,
    exp_all,
    normalise,
    pack,
    pack_bias,
    sum_buffer,
    tanh_all,
    total,
)


def test_tanh():
    x = np.linspace(-12, 12, 100_002, dtype=np.float32).reshape(3, -1)
    result = x.copy()
    tanh_all(result)
    np.testing.assert_allclose(result, np.tanh(x.astype(np.float64)), atol=4e-7)


def test_exp():
    x = np.concatenate([-np.geomspace(1e-8, 87, 50_001), [0.0, -87.5, -1e4, -3e38]]).astype(np.float32)
    result, powers = x.copy(), np.empty(len(x), np.float32)
    exp_all(result, powers, powers.view(np.int32))
    expected = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(result[:-3], expected[:-3], rtol=1.5e-7)
    assert result[-4] == 1
    np.testing.assert_allclose(result[-3:], np.exp(-87.0), rtol=1e-6)


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (3, 5), (4, 16), (7, 33), (128, 96)])
def test_affine(inputs, outputs):
    rng = np.random.default_rng(inputs)
    matrix, bias = rng.normal(size=(outputs, inputs)).astype(np.float32), rng.normal(size=outputs).astype(np.float32)
    x = rng.normal(size=(GROUP, inputs)).astype(np.float32)
    weights, packed_bias = pack(matrix), pack_bias(bias)
    assert weights.shape == (inputs, len(packed_bias))
    assert len(packed_bias) % PAD == 0
    y = np.full((GROUP, len(packed_bias)), np.nan, np.float32)
    affine(weights, packed_bias, x, y)
    np.testing.assert_allclose(y[:, :outputs], x.astype(np.float64) @ matrix.T + bias, atol=1e-5, rtol=1e-5)
    assert not y[:, outputs:].any()


@pytest.mark.parametrize("size", [1, 2, 3, 8, 16, 17, 33, 63, 100, 128, 129, 300, 512, 1000])
def test_sum_of_a_row(size):
    buffer = sum_buffer(3, size)
    assert not buffer.any()
    rows = np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)
    buffer[:, :size] = rows
    for row in range(3):
        halves = np.zeros(1 << (size - 1).bit_length(), np.float32)
        halves[:size] = rows[row]
        while len(halves) > 1:
            halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
        assert total(buffer, row) == halves[0]


def test_scaling_to_length_one():
    rows = np.array([[3, 0, 4], [0, 0, 0], [1, 2, 2]], np.float32)
    normalise(rows, 0, 2, sum_buffer(2, 3))
    np.testing.assert_allclose(rows, [[0.6, 0, 0.8], [0, 0, 0], [1, 2, 2]], atol=1e-7)
