import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from phrasetool.sentences import read_words
from phrasetool.syntax.syntax_controls import random_vectors, tag_vectors, untrained_vectors, word_vectors
from tests.syntax_models import random_syntax_model, toy_lines

LINES = toy_lines(30)[0]


def test_words_are_weighed_as_everywhere():
    # That of scikit-learn adds 1 to the logarithm, which its smooth variant then needs.
    texts, _ = read_words(LINES)
    found = word_vectors(texts)
    counts = (
        TfidfVectorizer(token_pattern=r"\S+", lowercase=False, use_idf=False, norm=None).fit_transform(LINES).toarray()
    )
    weighed = counts * np.log(len(LINES) / (counts > 0).sum(0))
    weighed /= np.linalg.norm(weighed, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T - np.diag((found**2).sum(1)),
                               weighed @ weighed.T - np.diag((weighed**2).sum(1)), atol=1e-6)  # fmt: skip
    assert found.shape[1] == ((counts > 0).sum(0) > 1).sum()


def test_a_word_of_all_texts_says_nothing():
    texts, _ = read_words(["a", "a"])
    assert word_vectors(texts).tolist() == [[0], [0]]


def test_noise_is_as_the_seed_says():
    assert np.array_equal(random_vectors(3, 4, 1), random_vectors(3, 4, 1))
    assert not np.array_equal(random_vectors(3, 4, 1), random_vectors(3, 4, 2))


def test_the_untrained_encoder_is_that_of_the_seed():
    model = random_syntax_model(1)
    texts, words = read_words(LINES)
    found = untrained_vectors(model.in_pieces(texts, words), model.shape, 1)
    assert np.array_equal(found, model.encode_texts(texts, words))
    assert not np.array_equal(found, untrained_vectors(model.in_pieces(texts, words), model.shape, 2))


def test_tags_are_counted():
    found = tag_vectors([[1, 1, 16], []])
    assert found.shape == (2, 17)
    assert found[0, [1, 16]].tolist() == [2, 1]
    assert found.sum() == pytest.approx(3)
