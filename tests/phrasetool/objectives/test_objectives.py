import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.objectives.in_batch import cosines, in_batch_cross_entropy
from phrasetool.objectives.max_semantic_margin import max_semantic_margin, semantic_error
from phrasetool.phrases import Phrases
from phrasetool.random_words import replace_words


def test_semantic_error_is_half_the_squared_distance():
    a, b = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[3.0, 0.0], [0.0, 0.0]])
    assert semantic_error(a, b).tolist() == [4.0, 0.0]


def test_max_semantic_margin_by_hand():
    t, good, bad = torch.zeros(3, 2), torch.zeros(3, 2), torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    # E(good) = 0; E(bad) = 0, 1/2, 2
    assert max_semantic_margin(t, good, bad).tolist() == [1.0, 0.5, 0.0]
    assert max_semantic_margin(t, bad, good, margin=2.0).tolist() == [2.0, 2.5, 4.0]


def naive_in_batch(similarities, temperature, smoothing=0.0):
    size = len(similarities)
    losses = []
    for i in range(size):
        loss = 0.0
        for scores in (similarities[i], similarities[:, i]):
            total = sum(math.exp(score / temperature) for score in scores)
            wanted = (1 - smoothing) * scores[i] + smoothing * sum(scores) / size
            loss += math.log(total) - wanted / temperature
        losses.append(loss)
    return losses


def test_cosines_of_every_pair():
    a, b = np.random.default_rng(2).normal(size=(2, 6, 4))
    naive = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    np.testing.assert_allclose(cosines(torch.tensor(a), torch.tensor(b)).numpy(), naive, rtol=1e-12)
    assert cosines(torch.zeros(2, 4), torch.ones(2, 4)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_in_batch_equals_the_obvious_formula_and_so_does_its_gradient(smoothing):
    similarities = torch.tensor(np.random.default_rng(2).uniform(-1, 1, (6, 6)), requires_grad=True)
    found = in_batch_cross_entropy(similarities, 0.2, smoothing)
    np.testing.assert_allclose(
        found.detach().numpy(), naive_in_batch(similarities.detach().numpy(), 0.2, smoothing), rtol=1e-9
    )
    assert torch.autograd.gradcheck(lambda s: in_batch_cross_entropy(s, 0.2, smoothing), (similarities,))


def test_in_batch_is_finite_for_zero_vectors_and_far_ends():
    a = torch.zeros(3, 4, requires_grad=True)
    loss = in_batch_cross_entropy(cosines(a, torch.ones(3, 4)), temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()
    opposite = torch.full((3, 3), -1.0, requires_grad=True)
    loss = in_batch_cross_entropy(opposite, temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(opposite.grad).all()
    with pytest.raises(ValueError, match="underflow"):
        in_batch_cross_entropy(opposite, temperature=0.02)


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=20), st.integers(7, 12), st.integers(0, 2**32 - 1))
def test_replaced_words_differ_are_known_and_keep_the_length(lists, vocabulary, seed):
    phrases = Phrases.from_lists(lists)
    bad = replace_words(phrases, vocabulary, np.random.default_rng(seed))
    assert (bad.offsets == phrases.offsets).all()
    assert (bad.words != phrases.words).all()
    assert ((bad.words >= 1) & (bad.words < vocabulary)).all()


def test_every_other_word_is_drawn_equally_often():
    phrases = Phrases.from_lists([[2]] * 30000)
    counts = np.bincount(replace_words(phrases, 5, np.random.default_rng(0)).words, minlength=5)
    assert counts[0] == counts[2] == 0
    np.testing.assert_allclose(counts[[1, 3, 4]] / 10000, 1, atol=0.05)


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(ValueError, match="vocabulary of 2"):
        replace_words(Phrases.from_lists([[1]]), 2, np.random.default_rng(0))
