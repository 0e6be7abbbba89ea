import sys

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from phrasetool.kernels.lstm_states import LstmWeights, lstm_states, lstm_step, one_blas_thread
from phrasetool.phrases import Phrases


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def naive_states(inputs, weights, back):
    """Return the states of an LSTM, computed in plain NumPy and float64."""
    units = len(weights.recurrent)
    state, cell = np.zeros(units), np.zeros(units)
    result = np.zeros((len(inputs), units))
    for position in range(len(inputs))[:: -1 if back else 1]:
        gates = inputs[position] @ weights.inputs + weights.bias + state @ weights.recurrent
        i, f, g, o = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        result[position] = state
    return result


@pytest.mark.parametrize("back", [False, True])
def test_states_are_those_of_each_text_alone(back):
    rng = np.random.default_rng(1)
    weights = LstmWeights(*(rng.normal(size=size).astype(np.float32) for size in ((6, 20), (5, 20), 20)))
    vectors = rng.normal(size=(9, 6)).astype(np.float32)
    texts = Phrases.from_lists([rng.integers(0, 9, length).tolist() for length in (3, 0, 1, 7, 3)])
    result = lstm_states(weights.products(vectors), texts.words, weights.recurrent, texts, back)
    expected = np.concatenate([naive_states(vectors[text], weights, back) for text in texts])
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_weights_and_gates_are_those_of_torch():
    lstm = torch.nn.LSTM(6, 5, batch_first=True)
    arrays = {f"some.{name}": value.detach().numpy() for name, value in lstm.named_parameters()}
    weights = LstmWeights.of(arrays, "some.{}_l0")
    vectors = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    with torch.no_grad():
        expected = lstm(torch.from_numpy(vectors[None]))[0][0].numpy()
    texts = Phrases.from_lists([range(4)])
    result = lstm_states(weights.products(vectors), texts.words, weights.recurrent, texts, False)
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_large_gates_do_not_overflow():
    gates = np.array([[1e30, -1e30, 1e30, 1e30]], np.float32)
    state, cell = lstm_step(gates, np.array([[3]], np.float32))
    assert (state[0, 0], cell[0, 0]) == (pytest.approx(np.tanh(1)), 1)


def test_no_texts_have_no_states():
    texts = Phrases.from_lists([])
    assert lstm_states(np.zeros((1, 8), np.float32), texts.words, np.zeros((2, 8), np.float32), texts, False).shape == (
        0,
        2,
    )


def test_products_have_one_thread_inside():
    with one_blas_thread():
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}


def test_without_threadpoolctl_nothing_happens(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread() as entered:
        assert entered is None
