import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.syntax.inference import SyntaxVectors, TagLikelihood, in_order
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.settings import END, SyntaxShape

SHAPES = {layers: SyntaxShape(30, 1, 6, 5, layers, 4, 2, 3, 40) for layers in (1, 2, 3)}


def texts_of(lengths, seed=1):
    rng = np.random.default_rng(seed)
    return Phrases.from_lists([rng.integers(0, 30, length).tolist() for length in lengths])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_vectors_are_those_of_torch(layers):
    shape = SHAPES[layers]
    arrays = shape.initial_arrays(1)
    texts = texts_of([3, 1, 9, 40, 2, 2])
    with torch.no_grad():
        padded = torch.from_numpy(texts.padded(40).astype(np.int64))
        expected = SyntaxNetwork(shape, arrays).encode(padded, torch.from_numpy(texts.lengths))[0].numpy()
    found = SyntaxVectors(arrays, shape)(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


@given(st.lists(st.lists(st.integers(0, 29), max_size=12), max_size=12), st.randoms())
def test_order_and_repetition_change_no_byte_of_vectors(lists, random):
    make = SyntaxVectors(SHAPES[2].initial_arrays(1), SHAPES[2])
    whole = make(Phrases.from_lists(lists))
    assert whole.shape == (len(lists), 10)
    order = list(range(len(lists)))
    random.shuffle(order)
    assert np.array_equal(make(Phrases.from_lists([lists[i] for i in order])), whole[order])
    assert np.array_equal(make(Phrases.from_lists(lists * 2)), np.concatenate([whole, whole]))
    for text, vector in zip(lists, whole, strict=True):
        assert bool(text) == vector.any()


def test_batches_change_next_to_nothing():
    make = SyntaxVectors(SHAPES[2].initial_arrays(1), SHAPES[2])
    texts = texts_of(np.random.default_rng(2).integers(1, 9, 600))
    whole = make(texts)
    for number in range(0, 600, 40):
        np.testing.assert_allclose(make(texts.part(number, number + 1))[0], whole[number], atol=1e-6)


def test_order_is_by_length_then_pieces():
    texts = Phrases.from_lists([[2, 1], [3], [2, 0], [1], []])
    assert in_order(texts).tolist() == [4, 3, 1, 2, 0]
    assert in_order(Phrases.from_lists([])).tolist() == []


SHAPE = SyntaxShape(30, 2, 6, 5, 2, 4, 2, 7, 40)
ARRAYS = SHAPE.initial_arrays(1)
SCORE = TagLikelihood(ARRAYS, SHAPE, SyntaxVectors(ARRAYS, SHAPE))


def by_torch(text, tags, language):
    network = SyntaxNetwork(SHAPE, ARRAYS)
    with torch.no_grad():
        vectors, last = network.encode(torch.tensor([text]), torch.tensor([len(text)]))
        logits = network.decode(vectors, last, torch.tensor([language]), torch.tensor([tags]))[0]
    wanted = [*tags, END]
    return float(torch.log_softmax(logits, 1)[range(len(wanted)), wanted].mean())


@pytest.mark.parametrize("language", [0, 1])
def test_means_are_those_of_torch(language):
    rng = np.random.default_rng(language)
    texts = [rng.integers(0, 30, length).tolist() for length in (3, 1, 9, 9, 2, 40)]
    tags = [rng.integers(0, 17, length).tolist() for length in (1, 6, 2, 2, 6, 12)]
    found = SCORE(Phrases.from_lists(texts), Phrases.from_lists(tags), language)
    assert found.dtype == np.float32
    expected = [by_torch(text, sequence, language) for text, sequence in zip(texts, tags, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


TEXT = st.lists(st.integers(0, 29), min_size=1, max_size=6)
TAGS = st.lists(st.integers(0, 16), min_size=1, max_size=6)


@given(st.lists(st.tuples(TEXT, TAGS), max_size=10), st.randoms())
def test_order_and_repetition_do_not_change_likelihoods(pairs, random):
    def score(some):
        return SCORE(Phrases.from_lists([a for a, _ in some]), Phrases.from_lists([b for _, b in some]), 0)

    whole = score(pairs)
    order = list(range(len(pairs)))
    random.shuffle(order)
    assert np.array_equal(score(pairs * 2), np.concatenate([whole, whole]))
    np.testing.assert_allclose(score([pairs[i] for i in order]), whole[order], atol=1e-6)
