"""Look-up of phrases in the sentences of a corpus."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus import sentence_index as occurrences
from phrasetool.smt.corpus.sentence_index import SORTED_WORDS, SentenceIndex, build_suffix_array, count_common
from tests.naive_filter import sentences_of
from tests.phrasetool.smt.corpus.drawn_corpora import CORPUS, WORDS, numbers_in

_SETS = st.lists(st.sets(st.integers(0, 40), max_size=30), min_size=1, max_size=8)


def as_sets(sets):
    """Return the sentence sets of the words of an index in which word w occurs in the sentences of set w."""
    sentences = [[w for w, s in enumerate(sets) if i in s] for i in range(41)]
    index = SentenceIndex.build(Phrases.from_lists(sentences), len(sets))
    index._frequent = 12
    return index.find(Phrases.from_lists([[w] for w in range(len(sets))]))


@given(_SETS, _SETS, st.data())
def test_counts_shared_sentences(first, second, data):
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(first) - 1), st.integers(0, len(second) - 1)), max_size=20))
    rows, columns = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    common = count_common(as_sets(first), as_sets(second), rows, columns)
    assert common.tolist() == [len(first[a] & second[b]) for a, b in pairs]


@given(_SETS, st.data())
def test_intersects_sets(sets, data):
    set_lists = data.draw(st.lists(st.lists(st.integers(0, len(sets) - 1), max_size=4), max_size=6))
    parts = Phrases.from_lists(set_lists)
    result = as_sets(sets).intersect(parts.words.astype(np.int64), parts.offsets)
    expected = [sorted(set.intersection(*(sets[i] for i in part))) if part else [] for part in set_lists]
    assert numbers_in(result) == expected


def test_sides_of_different_length_are_refused():
    sets = as_sets([{1}])
    with pytest.raises(ValueError, match="2 phrases"):
        count_common(sets, sets, np.zeros(2, np.int64), np.zeros(1, np.int64))


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
    result = index.find(Phrases.from_lists(phrases))
    expected = [sorted(sentences_of([phrase], sentences)) for phrase in phrases]
    assert numbers_in(result) == expected
    assert result.counts.tolist() == [len(s) for s in expected]


@given(CORPUS, st.lists(st.lists(st.integers(-1, WORDS), max_size=5), max_size=20), st.integers(1, 6))
def test_finds_the_sentences_that_hold_a_phrase(sentences, phrases, frequent):
    index = SentenceIndex.build(Phrases.from_lists(sentences), WORDS)
    index._frequent = frequent
    for _ in range(2):
        check_sets(sentences, phrases, index)


def test_the_cache_has_a_limited_size(monkeypatch):
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
    """`copy` transfers the same state of an object as `pickle`."""
    sentences = [[0, 1, 2], [0, 1], [0], [1, 2, 0]] * 4
    index = SentenceIndex.build(Phrases.from_lists(sentences), 3)
    index._frequent = 2
    check_sets(sentences, [[0], [1, 2]], index)
    copied = copy.deepcopy(index)
    assert copied._pool_used == 0 < index._pool_used
    check_sets(sentences, [[0], [1, 2], [2]], copied)


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


def test_the_threshold_of_frequent_phrases_has_a_minimum():
    assert SentenceIndex.build(Phrases.from_lists([[0]]), 1)._frequent == occurrences._FREQUENT
