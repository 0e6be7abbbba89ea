import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from phrasetool.syntax import network as syntax_network
from phrasetool.syntax.network import SyntaxNetwork, layer_states
from phrasetool.syntax.settings import END, SyntaxShape

SHAPE = SyntaxShape(9, 2, 4, 3, 2, 5, 2, 7, 40)


def batch(texts):
    lengths = torch.tensor([len(text) for text in texts])
    rows = [[*text, *[8] * (int(lengths.max()) - len(text))] for text in texts]
    return torch.tensor(rows), lengths


def test_padding_and_neighbours_change_next_to_nothing():
    network = SyntaxNetwork(SHAPE)
    texts = [[1, 2, 3], [4], [5, 6, 7, 8, 1, 2], [3, 3]]
    tags = torch.tensor([[1, 2, END], [3, END, END], [4, 5, 6], [END, END, END]])
    with torch.no_grad():
        vectors, last = network.encode(*batch(texts))
        logits = network.decode(vectors, last, torch.tensor([0, 1, 0, 1]), tags)
        assert vectors.shape == (4, 6)
        assert logits.shape == (4, 4, 18)
        for number, text in enumerate(texts):
            alone, own = network.encode(*batch([text]))
            torch.testing.assert_close(alone[0], vectors[number], atol=1e-6, rtol=0)
            torch.testing.assert_close(own[0], last[number], atol=1e-6, rtol=0)
            said = network.decode(alone, own, torch.tensor([number % 2]), tags[number : number + 1])
            torch.testing.assert_close(said[0], logits[number], atol=1e-6, rtol=0)


def test_texts_of_one_length_and_others_are_read_alike(monkeypatch):
    network = SyntaxNetwork(SHAPE)
    rng = np.random.default_rng(1)
    # Twenty of two pieces, ten of five, a few of other lengths, in random order.
    lengths = rng.permutation([2] * 20 + [5] * 10 + [1, 3, 3, 9])
    texts = [rng.integers(0, 9, length).tolist() for length in lengths]
    inputs, counts = batch(texts)
    vectors, last = network.encode(inputs, counts)
    for number, text in enumerate(texts):
        alone, own = network.encode(*batch([text]))
        torch.testing.assert_close(alone[0], vectors[number], atol=1e-6, rtol=0)
        torch.testing.assert_close(own[0], last[number], atol=1e-6, rtol=0)
    # And they teach the same as packed ones.
    taught = []
    for alike in (8, 1000):
        monkeypatch.setattr(syntax_network, "_MIN_GROUP", alike)
        network.zero_grad()
        vectors, last = network.encode(inputs, counts)
        (vectors.square().sum() + last.sum()).backward()
        taught.append([value.grad.clone() for value in network.parameters() if value.grad is not None])
    assert len(taught[0]) == len(taught[1])
    for one, other in zip(*taught, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_tag_depends_on_those_before_it_alone():
    network = SyntaxNetwork(SHAPE)
    with torch.no_grad():
        vectors, last = network.encode(*batch([[1, 2, 3]]))
        first, second = (
            network.decode(vectors, last, torch.tensor([0]), torch.tensor([tags]))[0] for tags in ([1, 2], [1, 3])
        )
    assert torch.equal(first[:2], second[:2])
    assert not torch.equal(first[2], second[2])


def test_it_learns_to_write_tags_by_language():
    network = SyntaxNetwork(SHAPE)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    texts, lengths = batch([[1, 2], [1, 2], [3, 4], [3, 4]])
    languages, tags = torch.tensor([0, 1, 0, 1]), torch.tensor([[1, 2], [2, 1], [3, END], [4, 4]])
    expected = torch.cat([tags, torch.full((4, 1), END)], 1)
    for _ in range(150):
        optimizer.zero_grad()
        logits = network.decode(*network.encode(texts, lengths), languages, tags)
        loss = cross_entropy(logits.flatten(0, 1), expected.flatten())
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.3
    # What stands for the unknown says nothing still.
    assert not network.arrays()["pieces.weight"][0].any()


def test_the_decoder_can_go_without_dropout():
    """Given what the encoder gave, nothing of the logits is random, and they are those of the network without it."""
    texts, tags = batch([[1, 2, 3]]), torch.tensor([[0, 1]])
    vectors, last = SyntaxNetwork(SHAPE).encode(*texts)
    logits = {
        (dropout, share): SyntaxNetwork(SHAPE, dropout=share, decoder_dropout=dropout).decode(
            vectors, last, torch.tensor([0]), tags
        )
        for dropout in (False, True)
        for share in (0.0, 0.5)
    }
    assert torch.equal(logits[False, 0.5], logits[False, 0.0])
    assert torch.equal(logits[True, 0.0], logits[False, 0.0])
    assert not torch.equal(logits[True, 0.5], logits[False, 0.0])


def test_dropout_is_as_the_seed_says():
    network = SyntaxNetwork(SHAPE, dropout=0.5)
    collected = []
    for seed in (1, 1, 2):
        network.seed_dropout(seed)
        collected.append(network.encode(*batch([[1, 2, 3]]))[0].detach().numpy())
    assert np.array_equal(collected[0], collected[1])
    assert not np.array_equal(collected[0], collected[2])
    alone = SyntaxNetwork(SHAPE).encode(*batch([[1, 2, 3]]))[0].detach().numpy()
    assert np.array_equal(network.eval().encode(*batch([[1, 2, 3]]))[0].detach().numpy(), alone)


def test_arrays_come_back():
    network = SyntaxNetwork(SHAPE, SHAPE.initial_arrays(3))
    for name, array in SHAPE.initial_arrays(3).items():
        assert np.array_equal(network.arrays()[name], array)


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
    expected = torch.randn(steps, batch, units) * there[..., None]

    def taught(states):
        leaves = [*given_, *layer.parameters()]
        return torch.autograd.grad((states * expected).sum(), leaves)

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
    collected = []
    for automatic in (False, True):
        monkeypatch.setattr(torch, "is_autocast_enabled", lambda device, answer=automatic: answer)
        network.seed_dropout(5)
        network.zero_grad()
        logits = network.decode(*network.encode(texts, lengths), languages, tags)
        # What is dropped behind the decoder is drawn for the same places in both.
        logits[inside].square().sum().backward()
        collected.append([logits[inside].detach(), *[value.grad.clone() for value in network.parameters()]])
    for one, other in zip(*collected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
