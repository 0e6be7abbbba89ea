import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence

from phrasetool.nn.lstm import StepProducts, lstm_step, packed_states, packing


@pytest.mark.parametrize("gathers", [False, True])
def test_steps_of_an_lstm_and_their_gradients_equal_those_of_a_sequence(gathers):
    torch.manual_seed(4)
    lstm = torch.nn.LSTM(5, 6, 2, batch_first=True)
    inputs, (states, cells) = torch.randn(3, 4, 5), torch.randn(2, 2, 3, 6)
    gradients = []
    for step_by_step in (False, True):
        lstm.zero_grad()
        if step_by_step:
            layers = [*zip(states, cells, strict=True)]
            product = StepProducts() if gathers else torch.nn.functional.linear
            outputs = []
            for row in inputs.unbind(1):
                layers = lstm_step(lstm, row, *zip(*layers, strict=True), product)
                outputs.append(layers[-1][0])
            result = torch.stack(outputs, 1)
        else:
            result = expected = lstm(inputs, (states, cells))[0]
        result.square().sum().backward()
        gradients.append({name: value.grad.clone() for name, value in lstm.named_parameters()})
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(gradients[1], gradients[0])


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    layers=st.integers(1, 2),
    both=st.booleans(),
    seed=st.integers(0, 99),
)
def test_packed_states_and_gradients_are_those_of_pytorch(lengths, layers, both, seed):
    torch.manual_seed(seed)
    lstm = torch.nn.LSTM(3, 4, layers, bidirectional=both)
    order, sizes, rows = packing(np.array(lengths))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    words = torch.randn(sum(lengths), 3, requires_grad=True)
    packed = words[torch.from_numpy(rows)]
    result = packed_states(lstm, packed, sizes)
    expected = lstm(PackedSequence(packed, torch.from_numpy(sizes)))[0].data
    torch.testing.assert_close(result, expected)
    output_gradient = torch.randn_like(result)
    leaves = [words, *lstm.parameters()]
    gradients = [
        torch.autograd.grad((states * output_gradient).sum(), leaves, retain_graph=True)
        for states in (result, expected)
    ]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(packed_states(lstm, packed, sizes), expected)


def test_gathered_gradients_can_be_taken_twice_and_in_bfloat16():
    torch.manual_seed(5)
    lstm, inputs = torch.nn.LSTM(5, 6), torch.randn(4, 3, 5)

    def gradients(product, times=1):
        state = cell = torch.zeros(3, 6)
        for row in inputs:
            ((state, cell),) = lstm_step(lstm, row, [state], [cell], product)
        total = state.square().sum()
        return [torch.autograd.grad(total, [*lstm.parameters()], retain_graph=True) for _ in range(times)]

    (plain,) = gradients(torch.nn.functional.linear)
    once, twice = gradients(StepProducts(), 2)
    torch.testing.assert_close(once, plain)
    torch.testing.assert_close(twice, once, rtol=0, atol=0)
    with torch.autocast("cpu", torch.bfloat16):
        (coarse,) = gradients(StepProducts())
    assert all(
        rounded.dtype == torch.float32 and not torch.equal(rounded, exact)
        for rounded, exact in zip(coarse, plain, strict=True)
    )
    torch.testing.assert_close(coarse, plain, rtol=0.05, atol=0.02)


def test_packed_gradients_can_be_taken_twice():
    lstm = torch.nn.LSTM(3, 4, bidirectional=True)
    total = packed_states(lstm, torch.randn(5, 3), np.array([2, 2, 1])).sum()
    once, twice = (torch.autograd.grad(total, [*lstm.parameters()], retain_graph=True) for _ in range(2))
    torch.testing.assert_close(once, twice, rtol=0, atol=0)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_packing(counts):
    order, sizes, rows = packing(np.array(counts))
    texts = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    assert sorted(order.tolist()) == list(range(len(counts)))
    expected = [texts[i][step] for step in range(max(counts)) for i in order.tolist() if step < counts[i]]
    assert rows.tolist() == expected
    assert sizes.tolist() == [sum(step < count for count in counts) for step in range(max(counts))]
