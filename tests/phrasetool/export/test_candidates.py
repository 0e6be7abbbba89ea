"""Candidates of source phrases, their selection and their text, compared with plain Python."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.export.candidates import (
    CandidateStore,
    Selector,
    TargetCandidates,
    as_phrases,
    most_frequent,
    unit_candidates,
    word_probabilities,
)
from phrasetool.export.units import Texts, joined, lines_of
from phrasetool.phrases import Phrases

WORDS = 6
# Entries of some sources: target words, and a value whose sums are exact.
ENTRY = st.tuples(st.lists(st.integers(0, WORDS - 1), max_size=4), st.integers(0, 8))
ENTRIES = st.lists(ENTRY, min_size=1, max_size=4)
TABLES = st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=3), ENTRIES), max_size=8)


def candidates_of(table, floor=0.0):
    """Return the candidates of a table, computed by the kernels."""
    entries = [entry for _, group in table for entry in group]
    offsets = np.concatenate([[0], np.cumsum([len(group) for _, group in table])]).astype(np.int64)
    return word_probabilities(
        Phrases.from_lists([source for source, _ in table]), np.arange(1.0, len(table) + 1), offsets,
        Phrases.from_lists([words for words, _ in entries]), np.array([value / 8 for _, value in entries]), WORDS,
        floor,
    )  # fmt: skip


def naive_candidates(entries, floor):
    sums = defaultdict(float)
    for words, value in entries:
        for word in set(words):
            sums[word] += value / 8
    return sorted(
        ((w, p) for w, p in sums.items() if p >= floor and p > 0), key=lambda candidate: (-candidate[1], candidate[0])
    )


def rows(found):
    return [
        list(zip(found.words[a:b].tolist(), found.scores[a:b].tolist(), strict=True))
        for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]


@given(TABLES, st.sampled_from([0.0, 0.25, 1.0]))
def test_probabilities_are_sums_over_translations(table, floor):
    assert rows(candidates_of(table, floor)) == [naive_candidates(entries, floor) for _, entries in table]


@given(TABLES, st.integers(1, 3), st.lists(st.integers(0, WORDS - 1), max_size=2, unique=True))
def test_candidates_of_a_phrase_are_not_those_of_its_words(table, most, always):
    # A source of one word occurs once.
    table = [(s, e) for k, (s, e) in enumerate(table) if len(s) > 1 or s not in [previous for previous, _ in table[:k]]]
    store = CandidateStore(None)
    store.append(candidates_of(table[:3]))
    if table[3:]:
        store.append(candidates_of(table[3:]))
    words, expected = {}, []
    for is_first_pass in (1, 0):
        expected = []
        for source, entries in table:
            known = set(always)
            if len(source) > 1:
                known.update(*(words.get(word, []) for word in source))
            chosen = [word for word, _ in naive_candidates(entries, 0) if word not in known][:most]
            expected.append(chosen)
            if is_first_pass and len(source) == 1:
                words[source[0]] = chosen
    selector = Selector(most, np.array(always, np.int32), WORDS)
    selector.learn(store.pieces(), 4)
    result = [words.tolist() for part in selector.select(store.pieces()) for words in as_phrases(part)]
    assert result == expected


def test_the_store_returns_the_appended_candidates(monkeypatch):
    monkeypatch.setattr("phrasetool.export.candidates._GROUPS_PER_CHUNK", 2)
    table = [([k % 3], [([k % 4, 5], 8 - k)]) for k in range(5)]
    store, result = CandidateStore(None), candidates_of(table)
    store.append(result)
    parts = list(store.pieces())
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [row for part in parts for row in rows(part)] == rows(result)
    assert np.concatenate([part.sources.words for part in parts]).tolist() == result.sources.words.tolist()
    assert np.concatenate([part.weights for part in parts]).tolist() == [1, 2, 3, 4, 5]


def test_units_get_the_mean_of_their_words():
    # The words 0 and 1, seen once and twice, share the unit 7.
    result = TargetCandidates(
        Phrases.from_lists([[0], [1], [0, 1]]), np.array([1.0, 2.0, 9.0]), np.array([0, 1, 3, 4]),
        np.array([4, 4, 5, 3], np.int32), np.array([0.75, 0.25, 0.5, 1.0]),
    )  # fmt: skip
    units = {0: [7], 1: [7, 2]}
    candidates = unit_candidates(
        [result, result], lambda sources: Phrases.from_lists([units[int(s[0])] for s in sources]), 6, 0.1
    )
    assert candidates.sources.words.tolist() == [2, 7]
    assert rows(candidates) == [[(5, 0.5), (4, 0.25)], [(4, (0.75 + 2 * 0.25) / 3), (5, 1 / 3)]]


def test_most_frequent():
    assert most_frequent(np.array([2.0, 0, 5, 2]), 2).tolist() == [2, 0]
    assert most_frequent(np.array([2.0, 0, 5, 2]), 9).tolist() == [2, 0, 3]


WORD = st.binary(min_size=1, max_size=3)


@given(st.lists(WORD, min_size=1, max_size=4), st.data())
def test_lines_are_keys_and_values(words, data):
    ids = st.lists(st.integers(0, len(words) - 1), max_size=3)
    keys, values = data.draw(st.lists(ids, max_size=4)), data.draw(st.lists(ids, min_size=1, max_size=3))
    texts = Texts(np.frombuffer(b"".join(words), np.uint8), np.cumsum([0, *map(len, words)]))
    chosen = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), min_size=len(keys), max_size=len(keys))), int)
    result = lines_of(joined(Phrases.from_lists(keys), texts), joined(Phrases.from_lists(values), texts), chosen)

    def text(phrase):
        return b" ".join(words[word] for word in phrase)

    expected = [text(key) + b"\t" + text(values[row]) + b"\n" for key, row in zip(keys, chosen, strict=True)]
    assert result.tobytes() == b"".join(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: candidates_of([([0], [([WORDS], 1)])]),
        lambda: joined(Phrases.from_lists([[1]]), Texts(np.zeros(1, np.uint8), np.array([0, 1]))),
        lambda: lines_of(*[Texts(np.zeros(1, np.uint8), np.array([0, 1]))] * 2, np.array([1])),
    ],
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError):
        wrong()
