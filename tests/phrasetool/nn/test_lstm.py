import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence

from phrasetool.nn.lstm import lstm_step, packed_states, packing


def test_steps_of_an_lstm_and_their_gradients_equal_those_of_a_sequence():
    torch.manual_seed(4)
    lstm = torch.nn.LSTM(5, 6, 2, batch_first=True)
    inputs, (states, cells) = torch.randn(3, 4, 5), torch.randn(2, 2, 3, 6)
    gradients = []
    for step_by_step in (False, True):
        lstm.zero_grad()
        if step_by_step:
            layers = [*zip(states, cells, strict=True)]
            outputs = []
            for row in inputs.unbind(1):
                layers = lstm_step(lstm, row, *zip(*layers, strict=True))
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
    ours = packed_states(lstm, packed, sizes)
    theirs = lstm(PackedSequence(packed, torch.from_numpy(sizes)))[0].data
    torch.testing.assert_close(ours, theirs)
    taught = torch.randn_like(ours)
    leaves = [words, *lstm.parameters()]
    gradients = [torch.autograd.grad((states * taught).sum(), leaves, retain_graph=True) for states in (ours, theirs)]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(packed_states(lstm, packed, sizes), theirs)


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
