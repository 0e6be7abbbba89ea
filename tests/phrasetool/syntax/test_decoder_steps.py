import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from phrasetool.syntax.decoder_steps import layer_states
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.syntax_shape import END, SyntaxShape


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5)),
    seed=st.integers(0, 99),
    behind=st.integers(0, 2),
)
def test_states_and_gradients_are_those_of_pytorch(lengths, sizes, seed, behind):
    lengths = sorted(lengths, reverse=True)
    inputs, constant, units = sizes
    torch.manual_seed(seed)
    layer = nn.LSTM(inputs + constant, units, batch_first=True)
    steps, batch = lengths[0] + behind, len(lengths)
    shapes = ((steps, batch, inputs), (batch, constant), (batch, units), (batch, units))
    read, same, state, cell = given_ = [torch.randn(shape, requires_grad=True) for shape in shapes]
    there = torch.arange(steps)[:, None] < torch.tensor(lengths)
    wanted = torch.randn(steps, batch, units) * there[..., None]

    def taught(states):
        leaves = [*given_, *layer.parameters()]
        return torch.autograd.grad((states * wanted).sum(), leaves)

    ours = layer_states(layer, read, same, (state, cell), np.array(lengths))
    assert not ours[~there].any()
    joined = torch.cat([read.transpose(0, 1), same[:, None].expand(-1, steps, -1)], 2)
    theirs = layer(joined, (state[None], cell[None]))[0].transpose(0, 1)
    torch.testing.assert_close(ours[there], theirs[there], atol=1e-5, rtol=1e-5)
    for one, other in zip(taught(ours), taught(theirs), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_the_decoder_is_the_same_where_pytorch_runs_it(monkeypatch):
    network = SyntaxNetwork(SyntaxShape(9, 2, 4, 3, 2, 5, 2, 7, 40), dropout=0.3)
    tags = torch.tensor([[1, END, END], [4, 5, 6], [END, END, END], [2, 3, END]])
    texts, lengths, languages = (
        torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]]),
        torch.tensor([2] * 4),
        torch.arange(4) % 2,
    )
    ends = (tags != END).sum(1)
    inside = torch.arange(4) <= ends[:, None]
    found = []
    for automatic in (False, True):
        monkeypatch.setattr(torch, "is_autocast_enabled", lambda device, answer=automatic: answer)
        network.seed_dropout(5)
        network.zero_grad()
        logits = network.decode(*network.encode(texts, lengths), languages, tags)
        # What is dropped behind the decoder is drawn for the same places in both.
        logits[inside].square().sum().backward()
        found.append([logits[inside].detach(), *[value.grad.clone() for value in network.parameters()]])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
