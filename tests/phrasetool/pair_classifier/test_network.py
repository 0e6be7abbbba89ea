import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier import network as module
from phrasetool.pair_classifier.network import (
    LONGEST_LENGTH,
    LengthEmbedding,
    SearchVectors,
    SiameseNetwork,
    input_arrays,
    lexicon_units,
    network_arrays,
    sentence_units,
    word_units,
)
from phrasetool.pair_classifier.settings import PairClassifierArchitecture
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import read_words
from tests.parallel_models import SMALL, WORDS, random_classifier, toy_pairs

COUNTS = np.array([3, 1, 5, 3, 2])
WORD_VECTORS = torch.from_numpy(np.random.default_rng(1).normal(size=(14, 8)).astype(np.float32))


def small_network(**changes):
    return SiameseNetwork(PairClassifierArchitecture(**{**SMALL, **changes}), 1).eval()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def naive_lstm(words, arrays, suffix):
    """Return the last state of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates), step by step."""
    wx, wh, bx, bh = (arrays[f"cells.{name}_l0{suffix}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    state = memory = np.zeros(wh.shape[1])
    for word in words:
        enter, forget, new, leave = np.split(wx @ word + bx + wh @ state + bh, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(memory)
    return state


def naive_gru(words, arrays, suffix):
    """Return the last state of a GRU (Cho et al. 2014, in the variant of PyTorch)."""
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
    for words in np.split(WORD_VECTORS.numpy().astype(np.float64), np.cumsum(COUNTS)[:-1]):
        both = [step(words, arrays, "")] + ([] if cell == "lstm" else [step(words[::-1], arrays, "_reverse")])
        yield np.concatenate(both)


@pytest.mark.parametrize("cell", ["bilstm", "lstm", "gru"])
def test_sentence_vectors_are_the_last_states_of_both_directions(cell):
    network = small_network(cell=cell)
    result = network.encode(WORD_VECTORS, COUNTS).detach().numpy()
    assert np.allclose(result, list(naive_sentences(network, cell)), atol=1e-6)


def test_sentence_vectors_are_those_of_torch_for_each_sentence_alone():
    network = small_network()
    alone = torch.nn.LSTM(8, 6, bidirectional=True)
    alone.load_state_dict(network.cells.state_dict())
    result = network.encode(WORD_VECTORS, COUNTS)
    for words, vector in zip(torch.split(WORD_VECTORS, COUNTS.tolist()), result, strict=True):
        _, (last, _) = alone(words[:, None])
        assert torch.allclose(vector, last[:, 0].reshape(-1), atol=1e-6)


@pytest.mark.parametrize("length", ["none", "concat", "add", "shared"])
def test_logits(length):
    network = small_network(length=length)
    a = {name: value.numpy().astype(np.float64) for name, value in network.state_dict().items()}
    rng = np.random.default_rng(2)
    sources, targets = rng.normal(size=(2, 4, 12))
    first, second = np.array([1, 4, 2, 120]), np.array([2, 4, 1, 3])

    def joined(vector, count, side):
        if length == "none":
            return vector
        row = a["length.tables"][0 if length == "shared" else side][min(count, 100)]
        return vector + row if length == "add" else np.concatenate([vector, row])

    expected = []
    for s, i, t, j in zip(sources, first, targets, second, strict=True):
        s, t = joined(s, i, 0), joined(t, j, 1)
        h3 = np.tanh(a["product.weight"] @ (s * t) + a["difference.weight"] @ abs(s - t) + a["product.bias"])
        expected.append(float((a["output.weight"] @ h3 + a["output.bias"])[0]))
    inputs = (torch.from_numpy(x.astype(np.float32)) if x.ndim == 2 else torch.from_numpy(x)
              for x in (sources, first, targets, second))  # fmt: skip
    assert np.allclose(network.logits(*inputs).detach().numpy(), expected, atol=1e-5)


def test_the_gradient_of_the_loss_of_one_pair_by_hand():
    """d loss / d logit is p - y, and the gradients of W1, W2 and W3 follow by the chain rule."""
    network = small_network(length="none")
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
        for layer, expected in (
            (network.output, error * h3[None]), (network.product, np.outer(back, product)),
            (network.difference, np.outer(back, difference)),
        ):  # fmt: skip
            assert np.allclose(layer.weight.grad.numpy(), expected, atol=1e-6)


def test_dropout_is_determined_by_the_seed():
    network = SiameseNetwork(PairClassifierArchitecture(**SMALL), 1, 0.5, 0.5)

    def drawn(seed):
        network.seed_dropout(seed)
        vectors = network.encode(WORD_VECTORS, COUNTS)
        lengths = torch.from_numpy(COUNTS)
        return network.logits(vectors, lengths, vectors.flip(0), lengths)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    network.eval()
    assert torch.equal(drawn(1), drawn(2))


def test_arrays_of_another_architecture():
    arrays = {name: value.numpy() for name, value in small_network().state_dict().items()}
    rebuilt = SiameseNetwork.from_arrays(PairClassifierArchitecture(**SMALL), arrays)
    assert torch.equal(rebuilt.encode(WORD_VECTORS, COUNTS), small_network().encode(WORD_VECTORS, COUNTS))
    with pytest.raises(RuntimeError):
        SiameseNetwork.from_arrays(PairClassifierArchitecture(**{**SMALL, "units": 7}), arrays)


VECTORS, LENGTHS = torch.randn(3, 12), torch.tensor([2, LONGEST_LENGTH, LONGEST_LENGTH + 50])


def length_embedding(length):
    architecture = PairClassifierArchitecture(**{**SMALL, "length": length})
    return LengthEmbedding(architecture, np.random.default_rng(1))


@pytest.mark.parametrize(("length", "tables"), [("concat", 2), ("shared", 1)])
def test_lengths_joined_to_the_sentence(length, tables):
    module = length_embedding(length)
    assert module.tables.shape == (tables, 101, 4)
    for side in (0, 1):
        result = module(VECTORS, LENGTHS, side)
        table = module.tables[side if tables == 2 else 0]
        assert torch.equal(result, torch.cat([VECTORS, table[[2, 100, 100]]], 1))


def test_lengths_added_to_the_sentence():
    module = length_embedding("add")
    for side in (0, 1):
        assert torch.equal(module(VECTORS, LENGTHS, side), VECTORS + module.tables[side][[2, 100, 100]])


def test_no_length():
    module = length_embedding("none")
    assert torch.equal(module(VECTORS, LENGTHS, 0), VECTORS)
    assert not list(module.parameters())


PAIRS = toy_pairs(200)


def test_batches_do_not_matter(monkeypatch):
    classifier, _ = random_classifier()
    texts = PAIRS.sources
    lexicon = classifier.inputs.lexicon(0, WORDS[0])
    result = classifier.sentence_vectors(0, texts, WORDS[0])
    with torch.no_grad():
        alone = np.concatenate([classifier.encode(0, texts.part(i, i + 1), lexicon).numpy() for i in range(len(texts))])
    assert np.abs(result - alone).max() < 1e-6
    # The order of sentences and the numbers of words do not change a bit.
    order = np.random.default_rng(1).permutation(200)
    assert np.array_equal(classifier.sentence_vectors(0, texts.select(order), WORDS[0]), result[order])
    renamed = Phrases(texts.offsets, 19 - texts.words)
    assert np.array_equal(classifier.sentence_vectors(0, renamed, WORDS[0][::-1]), result)
    monkeypatch.setattr(module, "_SENTENCES", 7)
    assert np.abs(classifier.sentence_vectors(0, texts, WORDS[0]) - result).max() < 1e-6


def test_threads_do_not_change_a_bit():
    classifier, _ = random_classifier(word_units=40, units=40)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(classifier.sentence_vectors(0, PAIRS.sources, WORDS[0]))
        assert torch.get_num_threads() == threads
    assert np.array_equal(*results)


def test_unknown_texts_have_zero_vectors_and_are_never_parallel():
    classifier, _ = random_classifier()
    texts = Phrases.from_lists([[0, 1], [], [20], [1, 20]])
    vectors = classifier.sentence_vectors(0, texts, [*WORDS[0], b"?"])
    assert vectors.any(1).tolist() == [True, False, False, True]
    logits = classifier.pair_logits(vectors, texts.lengths, vectors[[0, 0, 0, 1]], texts.lengths)
    assert np.isinf(logits).tolist() == [False, True, True, True]
    assert (logits[1:] < 0).all()


def test_long_texts_are_cut():
    classifier, _ = random_classifier(longest=3)
    texts = Phrases.from_lists([[0, 1, 2, 3, 4], [5], [], [0, 1, 2]])
    assert [text.tolist() for text in classifier.cut(texts)] == [[0, 1, 2], [5], [], [0, 1, 2]]
    vectors = classifier.sentence_vectors(0, texts, WORDS[0])
    assert np.array_equal(vectors[0], vectors[3])


@pytest.mark.parametrize("size", [3, 4096])
def test_pairs_in_batches(monkeypatch, size):
    classifier, _ = random_classifier()
    monkeypatch.setattr(module, "_PAIRS", size)
    sources, targets = (classifier.sentence_vectors(side, PAIRS.sources, WORDS[side])[:10] for side in (0, 1))
    lengths = PAIRS.sources.lengths[:10]
    result = classifier.pair_logits(sources, lengths, targets, lengths)
    with torch.no_grad():
        inputs = (torch.from_numpy(array) for array in (sources, lengths, targets, lengths))
        assert np.allclose(result, classifier.network.logits(*inputs).numpy(), atol=1e-6)


def test_no_sentences():
    classifier, _ = random_classifier()
    texts = Phrases.from_lists([])
    assert classifier.sentence_vectors(0, texts, []).shape == (0, 12)
    empty = np.zeros((0, 12), np.float32)
    assert classifier.pair_logits(empty, texts.lengths, empty, texts.lengths).shape == (0,)


def test_arrays_of_inputs_and_of_the_network():
    classifier, _ = random_classifier()
    arrays = classifier.arrays()
    assert set(input_arrays(arrays)) == {"source.words", "source.parts", "target.words", "target.parts"}
    assert set(network_arrays(arrays)) == set(classifier.network.state_dict())
    assert len(arrays) == 4 + len(network_arrays(arrays))


def test_units_of_words():
    assert word_units(b"Ab") == [b"wab", b"g\x02ab", b"gab\x03", b"g\x02ab\x03"]
    assert word_units("狗好".encode()) == [
        *(unit.encode() for unit in ("w狗好", "c狗", "c好", "g\x02狗好", "g狗好\x03", "g\x02狗好\x03")),
    ]
    # A word of one character has only one n-gram, and every byte is accepted.
    assert word_units(b"a") == [b"wa", b"g\x02a\x03"]
    assert word_units(b"\xff") == [b"w\xff", b"g\x02\xff\x03"]


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=4))
def test_a_sentence_has_the_units_of_its_words(texts):
    words = [b"one", b"two", "三".encode(), b"FOUR", b"x"]
    lexicon = lexicon_units(words, 64)
    assert lexicon.words.max() < 64
    result = sentence_units(Phrases.from_lists(texts), lexicon)
    assert [row.tolist() for row in result] == [[unit for word in text for unit in lexicon[word]] for text in texts]


TABLE = np.random.default_rng(1).standard_normal((256, 5)).astype(np.float16)


def test_a_vector_is_the_sum_over_all_units():
    lines = ["the dog sleeps", "", "the the dog", "unknown 42", "dog"]
    texts, words = read_words(lines)
    result = SearchVectors(TABLE).encode(texts, words)
    for line, vector in zip(lines, result, strict=True):
        units = [unit for word in line.split() for unit in lexicon_units([word.encode()], 256)[0]]
        total = TABLE.astype(np.float64)[units].sum(0)
        np.testing.assert_allclose(vector, total / max(np.linalg.norm(total), 1e-12), atol=1e-6)
    # Vectors do not depend on the other texts.
    alone = [SearchVectors(TABLE).encode(*read_words([line])) for line in lines]
    np.testing.assert_array_equal(np.concatenate(alone), result)


@pytest.mark.parametrize("shape", [(0, 4), (100, 4), (4,)])
def test_invalid_tables_are_refused(shape):
    with pytest.raises(ValueError, match="a power of two"):
        SearchVectors(np.zeros(shape, np.float16))
