import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.random_words import replace_words


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
