import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.suffix_array import SORTED_WORDS, build_suffix_array
from tests.phrasetool.smt.corpus.drawn_corpora import CORPUS, WORDS


def suffix(text, position):
    words = []
    while text[position] >= 0 and len(words) < SORTED_WORDS:
        words.append(int(text[position]))
        position += 1
    return words


def check_suffix_array(sentences, words, threads):
    text, suffixes, starts = build_suffix_array(Phrases.from_lists(sentences), words, threads)
    assert sorted(suffixes.tolist()) == np.flatnonzero(text >= 0).tolist()
    ordered = [suffix(text, position) for position in suffixes]
    assert ordered == sorted(ordered)
    for word in range(words):
        assert {s[0] for s in ordered[starts[word] : starts[word + 1]]} <= {word}
    assert starts[-1] == len(suffixes)


@given(CORPUS, st.integers(1, 3))
def test_suffixes_are_sorted(sentences, threads):
    check_suffix_array(sentences, WORDS, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_suffixes_of_a_larger_corpus_are_sorted(threads):
    rng = np.random.default_rng(5)
    sentences = [rng.zipf(1.5, rng.integers(0, 40)).clip(1, 50).astype(int) - 1 for _ in range(400)]
    sentences += sentences[:150] + [np.zeros(500, int)]
    check_suffix_array([s.tolist() for s in sentences], 50, threads)


def test_an_id_beyond_the_words_is_refused():
    with pytest.raises(ValueError, match="not below 2"):
        build_suffix_array(Phrases.from_lists([[0, 2]]), 2)
