import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.syntax.network import SyntaxNetwork
from phrasetool.syntax.syntax_shape import END, SyntaxShape
from phrasetool.syntax.syntax_vectors import SyntaxVectors
from phrasetool.syntax.tag_likelihood import TagLikelihood

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
def test_order_and_repetition_change_no_byte(pairs, random):
    def score(some):
        return SCORE(Phrases.from_lists([a for a, _ in some]), Phrases.from_lists([b for _, b in some]), 0)

    whole = score(pairs)
    order = list(range(len(pairs)))
    random.shuffle(order)
    assert np.array_equal(score(pairs * 2), np.concatenate([whole, whole]))
    np.testing.assert_allclose(score([pairs[i] for i in order]), whole[order], atol=1e-6)
