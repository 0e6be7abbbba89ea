import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.architecture import SiameseArchitecture
from phrasetool.pair_classifier.network import SiameseNetwork, packing
from tests.parallel_models import SMALL

COUNTS = np.array([3, 1, 5, 3, 2])
WORDS = torch.from_numpy(np.random.default_rng(1).normal(size=(14, 8)).astype(np.float32))


def made(**changes):
    return SiameseNetwork(SiameseArchitecture(**{**SMALL, **changes}), 1).eval()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def naive_lstm(words, arrays, suffix):
    """The last state of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates), a step at a time."""
    wx, wh, bx, bh = (arrays[f"cells.{name}_l0{suffix}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    state = memory = np.zeros(wh.shape[1])
    for word in words:
        enter, forget, new, leave = np.split(wx @ word + bx + wh @ state + bh, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(memory)
    return state


def naive_gru(words, arrays, suffix):
    """The last state of a GRU (Cho et al. 2014, as torch has it)."""
    wx, wh, bx, bh = (arrays[f"cells.{name}_l0{suffix}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    state = np.zeros(wh.shape[1])
    for word in words:
        reset, update, new = np.split(wx @ word + bx, 3)
        old_reset, old_update, old_new = np.split(wh @ state + bh, 3)
        update = sigmoid(update + old_update)
        state = (1 - update) * np.tanh(new + sigmoid(reset + old_reset) * old_new) + update * state
    return state


def naive_sentences(network, cell):
    arrays = {name: value.numpy().astype(np.float64) for name, value in network.state_dict().items()}
    step = naive_gru if cell == "gru" else naive_lstm
    for words in np.split(WORDS.numpy().astype(np.float64), np.cumsum(COUNTS)[:-1]):
        both = [step(words, arrays, "")] + ([] if cell == "lstm" else [step(words[::-1], arrays, "_reverse")])
        yield np.concatenate(both)


@pytest.mark.parametrize("cell", ["bilstm", "lstm", "gru"])
def test_sentence_vectors_are_the_last_states_of_both_directions(cell):
    network = made(cell=cell)
    found = network.encode(WORDS, COUNTS).detach().numpy()
    assert np.allclose(found, list(naive_sentences(network, cell)), atol=1e-6)


def test_each_sentence_alone_as_torch_reads_it():
    network = made()
    alone = torch.nn.LSTM(8, 6, bidirectional=True)
    alone.load_state_dict(network.cells.state_dict())
    found = network.encode(WORDS, COUNTS)
    for words, vector in zip(torch.split(WORDS, COUNTS.tolist()), found, strict=True):
        _, (last, _) = alone(words[:, None])
        assert torch.allclose(vector, last[:, 0].reshape(-1), atol=1e-6)


@pytest.mark.parametrize("length", ["none", "concat", "add", "shared"])
def test_logits(length):
    network = made(length=length)
    a = {name: value.numpy().astype(np.float64) for name, value in network.state_dict().items()}
    rng = np.random.default_rng(2)
    sources, targets = rng.normal(size=(2, 4, 12))
    first, second = np.array([1, 4, 2, 120]), np.array([2, 4, 1, 3])

    def joined(vector, count, side):
        if length == "none":
            return vector
        row = a["length.tables"][0 if length == "shared" else side][min(count, 100)]
        return vector + row if length == "add" else np.concatenate([vector, row])

    wanted = []
    for s, i, t, j in zip(sources, first, targets, second, strict=True):
        s, t = joined(s, i, 0), joined(t, j, 1)
        h3 = np.tanh(a["product.weight"] @ (s * t) + a["difference.weight"] @ abs(s - t) + a["product.bias"])
        wanted.append(float((a["output.weight"] @ h3 + a["output.bias"])[0]))
    given = (torch.from_numpy(x.astype(np.float32)) if x.ndim == 2 else torch.from_numpy(x)
             for x in (sources, first, targets, second))  # fmt: skip
    assert np.allclose(network.logits(*given).detach().numpy(), wanted, atol=1e-5)


def test_the_gradient_of_the_loss_of_one_pair_by_hand():
    """d loss / d logit is p - y, and from there back to W1, W2 and W3 by the chain rule."""
    network = made(length="none")
    s, t = torch.randn(1, 12), torch.randn(1, 12)
    for parallel in (0.0, 1.0):
        network.zero_grad()
        logit = network.logits(s, torch.tensor([1]), t, torch.tensor([1]))
        torch.nn.functional.binary_cross_entropy_with_logits(logit, torch.tensor([parallel])).backward()
        product, difference = (s * t)[0].numpy(), (s - t).abs()[0].numpy()
        w1, w2 = network.product.weight.detach().numpy(), network.difference.weight.detach().numpy()
        h3 = np.tanh(w1 @ product + w2 @ difference + network.product.bias.detach().numpy())
        error = sigmoid(logit.item()) - parallel
        back = error * network.output.weight.detach().numpy()[0] * (1 - h3**2)
        for layer, wanted in (
            (network.output, error * h3[None]), (network.product, np.outer(back, product)),
            (network.difference, np.outer(back, difference)),
        ):  # fmt: skip
            assert np.allclose(layer.weight.grad.numpy(), wanted, atol=1e-6)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_packing(counts):
    order, sizes, rows = packing(np.array(counts))
    texts = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    assert sorted(order.tolist()) == list(range(len(counts)))
    wanted = [texts[i][step] for step in range(max(counts)) for i in order.tolist() if step < counts[i]]
    assert rows.tolist() == wanted
    assert sizes.tolist() == [sum(step < count for count in counts) for step in range(max(counts))]


def test_dropout_is_a_matter_of_its_seed():
    network = SiameseNetwork(SiameseArchitecture(**SMALL), 1, 0.5, 0.5)

    def drawn(seed):
        network.seed_dropout(seed)
        vectors = network.encode(WORDS, COUNTS)
        lengths = torch.from_numpy(COUNTS)
        return network.logits(vectors, lengths, vectors.flip(0), lengths)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    network.eval()
    assert torch.equal(drawn(1), drawn(2))


def test_arrays_of_another_architecture():
    arrays = {name: value.numpy() for name, value in made().state_dict().items()}
    again = SiameseNetwork.from_arrays(SiameseArchitecture(**SMALL), arrays)
    assert torch.equal(again.encode(WORDS, COUNTS), made().encode(WORDS, COUNTS))
    with pytest.raises(RuntimeError):
        SiameseNetwork.from_arrays(SiameseArchitecture(**{**SMALL, "units": 7}), arrays)
