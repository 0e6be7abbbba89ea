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
            alone, own_last = network.encode(*batch([text]))
            torch.testing.assert_close(alone[0], vectors[number], atol=1e-6, rtol=0)
            torch.testing.assert_close(own_last[0], last[number], atol=1e-6, rtol=0)
            own_logits = network.decode(alone, own_last, torch.tensor([number % 2]), tags[number : number + 1])
            torch.testing.assert_close(own_logits[0], logits[number], atol=1e-6, rtol=0)


def test_groups_of_equal_length_and_packed_texts_are_encoded_alike(monkeypatch):
    network = SyntaxNetwork(SHAPE)
    rng = np.random.default_rng(1)
    # Twenty of two pieces, ten of five, a few of other lengths, in random order.
    lengths = rng.permutation([2] * 20 + [5] * 10 + [1, 3, 3, 9])
    texts = [rng.integers(0, 9, length).tolist() for length in lengths]
    inputs, counts = batch(texts)
    vectors, last = network.encode(inputs, counts)
    for number, text in enumerate(texts):
        alone, own_last = network.encode(*batch([text]))
        torch.testing.assert_close(alone[0], vectors[number], atol=1e-6, rtol=0)
        torch.testing.assert_close(own_last[0], last[number], atol=1e-6, rtol=0)
    # The gradients are those of packed texts, too.
    gradients = []
    for min_group in (8, 1000):
        monkeypatch.setattr(syntax_network, "_MIN_GROUP", min_group)
        network.zero_grad()
        vectors, last = network.encode(inputs, counts)
        (vectors.square().sum() + last.sum()).backward()
        gradients.append([value.grad.clone() for value in network.parameters() if value.grad is not None])
    assert len(gradients[0]) == len(gradients[1])
    for grouped, packed in zip(*gradients, strict=True):
        torch.testing.assert_close(grouped, packed, atol=1e-5, rtol=1e-5)


def test_logits_depend_only_on_preceding_tags():
    network = SyntaxNetwork(SHAPE)
    with torch.no_grad():
        vectors, last = network.encode(*batch([[1, 2, 3]]))
        first, second = (
            network.decode(vectors, last, torch.tensor([0]), torch.tensor([tags]))[0] for tags in ([1, 2], [1, 3])
        )
    assert torch.equal(first[:2], second[:2])
    assert not torch.equal(first[2], second[2])


def test_tags_of_two_languages_are_learnt():
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
    # The vector of the unknown piece is still zero.
    assert not network.arrays()["pieces.weight"][0].any()


def test_decoder_dropout_can_be_disabled():
    """Without decoder dropout, the logits of given encoder states are those of a network without dropout."""
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


def test_dropout_is_determined_by_the_seed():
    network = SyntaxNetwork(SHAPE, dropout=0.5)
    collected = []
    for seed in (1, 1, 2):
        network.seed_dropout(seed)
        collected.append(network.encode(*batch([[1, 2, 3]]))[0].detach().numpy())
    assert np.array_equal(collected[0], collected[1])
    assert not np.array_equal(collected[0], collected[2])
    without_dropout = SyntaxNetwork(SHAPE).encode(*batch([[1, 2, 3]]))[0].detach().numpy()
    assert np.array_equal(network.eval().encode(*batch([[1, 2, 3]]))[0].detach().numpy(), without_dropout)


def test_arrays_round_trip():
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
    read, same, state, cell = arguments = [torch.randn(shape, requires_grad=True) for shape in shapes]
    inside = torch.arange(steps)[:, None] < torch.tensor(lengths)
    output_gradient = torch.randn(steps, batch, units) * inside[..., None]

    def gradients_of(states):
        leaves = [*arguments, *layer.parameters()]
        return torch.autograd.grad((states * output_gradient).sum(), leaves)

    result = layer_states(layer, read, same, (state, cell), np.array(lengths))
    assert not result[~inside].any()
    joined = torch.cat([read.transpose(0, 1), same[:, None].expand(-1, steps, -1)], 2)
    reference = layer(joined, (state[None], cell[None]))[0].transpose(0, 1)
    torch.testing.assert_close(result[inside], reference[inside], atol=1e-5, rtol=1e-5)
    for gradient, expected_gradient in zip(gradients_of(result), gradients_of(reference), strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-5)


def test_the_decoder_run_by_pytorch_gives_the_same_results(monkeypatch):
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
        # Dropout after the decoder is drawn for the same positions in both.
        logits[inside].square().sum().backward()
        collected.append([logits[inside].detach(), *[value.grad.clone() for value in network.parameters()]])
    for own, pytorch in zip(*collected, strict=True):
        torch.testing.assert_close(own, pytorch, atol=1e-5, rtol=1e-5)
