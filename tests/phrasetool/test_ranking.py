import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.ranking import pairwise_auc, replace_words, replace_words_by_frequency


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=20), st.integers(7, 12), st.integers(0, 2**32 - 1))
def test_replaced_words_differ_are_known_and_keep_the_length(lists, vocabulary, seed):
    phrases = Phrases.from_lists(lists)
    for replace in (replace_words, replace_words_by_frequency):
        bad = replace(phrases, vocabulary, np.random.default_rng(seed))
        assert bad.words.dtype == np.int32
        assert (bad.offsets == phrases.offsets).all()
        assert (bad.words != phrases.words).all()
        assert ((bad.words >= 1) & (bad.words < vocabulary)).all()
    words = set(phrases.words.tolist()) - {0}
    assert len(words) < 2 or set(bad.words.tolist()) <= words


def test_all_other_words_are_drawn_equally_often():
    phrases = Phrases.from_lists([[2]] * 30000)
    counts = np.bincount(replace_words(phrases, 5, np.random.default_rng(0)).words, minlength=5)
    assert counts[0] == counts[2] == 0
    np.testing.assert_allclose(counts[[1, 3, 4]] / 10000, 1, atol=0.05)


def test_words_are_drawn_as_often_as_they_occur():
    phrases = Phrases.from_lists([[1]] * 3000 + [[2, 0]] * 6000 + [[3]] * 12000)
    bad = replace_words_by_frequency(phrases, 9, np.random.default_rng(0)).words
    shares = {word: np.bincount(bad[phrases.words == word], minlength=4) for word in range(4)}
    np.testing.assert_allclose(shares[0] / 6000, [0, 1 / 7, 2 / 7, 4 / 7], atol=0.03)
    np.testing.assert_allclose(shares[1] / 3000, [0, 0, 1 / 3, 2 / 3], atol=0.03)
    np.testing.assert_allclose(shares[3] / 12000, [0, 1 / 3, 2 / 3, 0], atol=0.03)


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(ValueError, match="vocabulary of 2"):
        replace_words(Phrases.from_lists([[1]]), 2, np.random.default_rng(0))


def naive(own, targets, similarity, seed):
    """Return the same AUC, computed in plain Python with the same random draws."""
    rng = np.random.default_rng(seed)
    points = []
    for _ in range(8):
        for row, drawn_row in enumerate(rng.integers(0, len(own), len(own)).tolist()):
            if targets[drawn_row] != targets[row]:
                drawn_score = similarity[row][targets[drawn_row]]
                points.append(1.0 if own[row] > drawn_score else 0.5 if own[row] == drawn_score else 0.0)
    return sum(points) / len(points) if points else None


def test_auc_agrees_with_naive():
    rng = np.random.default_rng(3)
    # Whole numbers, so that there are ties.
    similarity = rng.integers(0, 4, (30, 9)).astype(np.float32)
    targets = rng.integers(0, 9, 30)
    rows = np.arange(30)
    own = similarity[rows, targets] + 1
    result = pairwise_auc(own, targets, lambda other: similarity[rows, other], 5)
    assert result == naive(own.tolist(), targets.tolist(), similarity.tolist(), 5)
    assert 0.5 < result < 1


def test_bounds():
    targets = np.arange(40)
    for sign, expected in ((1, 1.0), (-1, 0.0), (0, 0.5)):
        own = np.full(40, sign, np.float32)
        assert pairwise_auc(own, targets, lambda other: np.zeros(len(other), np.float32), 1) == expected


def test_a_single_target_has_no_auc():
    own = np.ones(5, np.float32)
    assert pairwise_auc(own, np.zeros(5, np.int64), lambda other: own, 1) is None
