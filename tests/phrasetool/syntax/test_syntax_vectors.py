import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.syntax_shape import SyntaxShape
from phrasetool.syntax.syntax_vectors import SyntaxVectors, in_order

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
def test_order_and_repetition_change_no_byte(lists, random):
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
