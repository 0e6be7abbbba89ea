"""Look-up of phrases in the sentences of a corpus."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus import sentence_index as occurrences
from phrasetool.smt.corpus.sentence_index import SORTED_WORDS, SentenceIndex, build_suffix_array
from tests.naive_filter import sentences_of
from tests.phrasetool.smt.corpus.drawn_corpora import CORPUS, WORDS, numbers_in


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


def test_a_corpus_of_empty_sentences():
    index = SentenceIndex.build(Phrases.from_lists([[], []]), 0, 2)
    assert index.sentences == 2
    assert numbers_in(index.find(Phrases.from_lists([[0], []]))) == [[], []]


def check_sets(sentences, phrases, index):
    found = index.find(Phrases.from_lists(phrases))
    expected = [sorted(sentences_of([phrase], sentences)) for phrase in phrases]
    assert numbers_in(found) == expected
    assert found.counts.tolist() == [len(s) for s in expected]


@given(CORPUS, st.lists(st.lists(st.integers(-1, WORDS), max_size=5), max_size=20), st.integers(1, 6))
def test_finds_the_sentences_that_hold_a_phrase(sentences, phrases, frequent):
    index = SentenceIndex.build(Phrases.from_lists(sentences), WORDS)
    index._frequent = frequent
    for _ in range(2):
        check_sets(sentences, phrases, index)


def test_remembers_until_there_is_no_room(monkeypatch):
    sentences = [[0, 1, 2], [0, 1], [0], [1, 2, 0]] * 4
    index = SentenceIndex.build(Phrases.from_lists(sentences), 3)
    index._frequent = 2
    index._pool = index._pool[:20]
    phrases = [[0], [1], [0, 1], [1, 2], [2], [2, 0]]
    for _ in range(2):
        check_sets(sentences, phrases, index)
    assert 0 < index._pool_used <= 20


def test_phrases_longer_than_the_sorted_words():
    long = [k % 3 for k in range(SORTED_WORDS + 8)]
    sentences = [long, [*long[:-1], 3], [3, *long, 3], long[:SORTED_WORDS]]
    index = SentenceIndex.build(Phrases.from_lists(sentences), 4)
    index._frequent = 1
    check_sets(sentences, [long, long[:-1], long[:SORTED_WORDS], long[:-2], [*long, 3], [*long, 0]], index)


def test_one_phrase_never_crosses_sentences():
    index = SentenceIndex.build(Phrases.from_lists([[0, 1], [2, 3]]), 4)
    assert index.find(Phrases.from_lists([[1, 2]])).counts.tolist() == [0]


def test_another_process_finds_the_same():
    """`copy` asks an object what `pickle` would send."""
    sentences = [[0, 1, 2], [0, 1], [0], [1, 2, 0]] * 4
    index = SentenceIndex.build(Phrases.from_lists(sentences), 3)
    index._frequent = 2
    check_sets(sentences, [[0], [1, 2]], index)
    sent = copy.deepcopy(index)
    assert sent._pool_used == 0 < index._pool_used
    check_sets(sentences, [[0], [1, 2], [2]], sent)


def test_several_threads_find_the_same():
    rng = np.random.default_rng(2)
    sentences = [rng.integers(0, 6, rng.integers(1, 15)).tolist() for _ in range(500)]
    index = SentenceIndex.build(Phrases.from_lists(sentences), 6)
    index._frequent = 20
    phrases = Phrases.from_lists([rng.integers(0, 6, rng.integers(1, 5)).tolist() for _ in range(200)])
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: numbers_in(index.find(phrases)), range(8)))
    assert all(result == results[0] for result in results)
    assert results[0] == [sorted(sentences_of([p.tolist()], sentences)) for p in phrases]


def test_what_is_frequent_grows_with_the_corpus():
    assert SentenceIndex.build(Phrases.from_lists([[0]]), 1)._frequent == occurrences._FREQUENT
