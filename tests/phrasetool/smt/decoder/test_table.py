"""Look-up of phrases, and copies of unknown words."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import (
    Entries,
    build_table,
    covered_tokens,
    find_phrase,
    index_phrases,
    offered_words,
    spans_of,
)
from phrasetool.unique_phrases import number_distinct
from tests.decoder_models import random_model, random_sentence, table_of

PHRASES = st.lists(st.lists(st.integers(-1, 4), max_size=4), max_size=30)


@given(PHRASES)
def test_distinct_phrases_are_numbered_in_order(phrases):
    order = list(dict.fromkeys(map(tuple, phrases)))
    assert number_distinct(Phrases.from_lists(phrases))[0].tolist() == [order.index(tuple(p)) for p in phrases]


@given(PHRASES, st.lists(st.integers(-1, 5), max_size=6))
def test_phrases_are_found(phrases, text):
    index, numbers = index_phrases(Phrases.from_lists(phrases))
    order = list(dict.fromkeys(map(tuple, phrases)))
    assert numbers.tolist() == [order.index(tuple(p)) for p in phrases]
    assert index.longest.tolist() == [max(map(len, phrases), default=0)]
    words = np.array(text, np.int32)
    for start in range(len(text)):
        for end in range(start, len(text) + 1):
            number = find_phrase(index, words, start, end)
            assert max(number, -1) == (order.index(tuple(text[start:end])) if tuple(text[start:end]) in order else -1)


@given(st.lists(st.lists(st.integers(0, 4), max_size=7), max_size=5), st.integers(1, 5))
def test_spans(sentences, longest):
    expected = sorted(
        tuple(s[i : i + size]) for s in sentences for size in range(1, longest + 1) for i in range(len(s) - size + 1)
    )
    result = spans_of(Phrases.from_lists(sentences), longest)
    assert sorted(tuple(span.tolist()) for span in result) == expected


def entries(pairs, source, target):
    return Entries(
        Phrases.from_lists([[source.add(w) for w in s.split()] for s, _ in pairs]),
        Phrases.from_lists([[target.add(w) for w in t.split()] for _, t in pairs]),
        np.arange(2 * len(pairs), dtype=np.float32).reshape(-1, 2),
        np.zeros((len(pairs), 3), np.float32),
        Phrases.from_lists([[0, 257]] * len(pairs)),
        np.ones((len(pairs), 3), np.float32),
        np.arange(len(pairs)),
        np.zeros(len(pairs), np.int32),
    )


def test_words_without_an_entry_of_their_own_are_copied():
    source, target = Symbols(), Symbols()
    # `haus` occurs only in a longer phrase and is copied; `ist` has an entry of its own, with an empty target.
    pairs = [(b"das haus", b"the house"), (b"ist", b""), (b"das", b"the"), (b"das haus", b"house"), (b"das", b"that")]
    result = entries(pairs, source, target)
    text = source.read_lines(b"das haus ist neu\n")
    table = build_table(result, source, target, np.unique(text.words).astype(np.int32))
    rows = [
        (source.join(table.index.words[slice(*table.index.offsets[s : s + 2])]), target.join(table.targets[e]))
        for e, s in enumerate(table.entry_sources.tolist())
    ]
    # Rows are grouped by source in order of first occurrence; within a source, the order is unchanged.
    copies = [(b"haus", b"haus"), (b"neu", b"neu")]
    in_order = [pairs[0], pairs[3], pairs[1], pairs[2], pairs[4], *copies]
    assert rows == in_order
    assert table.copies.tolist() == [row in copies for row in rows]
    assert table.sources_of(np.arange(len(table))).tolist() == table.entry_sources.tolist()
    # Copies have scores of 0, a one-to-one alignment and no counts.
    assert table.scores[-2:].tolist() == [[0, 0], [0, 0]]
    assert table.reordering[-2:].tolist() == [[0] * 3] * 2
    assert [a.tolist() for a in table.alignments][-3:] == [[0, 257], [0], [0]]
    assert all(map(math.isnan, table.counts[-1]))
    assert table.scores[1].tolist() == [6, 7]


def test_without_a_text_nothing_is_copied():
    source, target = Symbols(), Symbols()
    table = build_table(entries([(b"das haus", b"the house")], source, target), source, target)
    assert len(table) == 1
    assert not table.copies.any()


def test_a_table_without_entries_is_all_copies():
    source, target = Symbols(), Symbols()
    text = source.read_lines(b"a b\n")
    result = Entries(
        Phrases.from_lists([]), Phrases.from_lists([]), np.zeros((0, 2), np.float32), np.zeros((0, 0), np.float32),
        Phrases.from_lists([]), np.zeros((0, 3), np.float32), np.zeros(0, np.int64),
        np.zeros(0, np.int32),
    )  # fmt: skip
    table = build_table(result, source, target, np.unique(text.words).astype(np.int32))
    assert table.copies.tolist() == [True, True]
    assert table.scores.shape == (2, 2)


def naive(sentence, sources):
    result = [False] * len(sentence)
    for start in range(len(sentence)):
        for end in range(start + 1, len(sentence) + 1):
            if tuple(sentence[start:end]) in sources:
                result[start:end] = [True] * (end - start)
    return result


def test_tokens_inside_of_phrases_that_occur():
    outcomes = set()
    for seed in range(40):
        rng = random.Random(seed)
        sentences = [random_sentence(rng, rng.randint(0, 7)) for _ in range(4)]
        model = random_model(rng, sentences[0])
        model.entries[:] = [entry for entry in model.entries if len(entry.source) > 1 or rng.random() < 0.5]
        table, texts = table_of(model, sentences)
        sources = {entry.source for entry in model.entries}
        expected = [token for sentence in sentences for token in naive(sentence, sources)]
        assert covered_tokens(table, texts).tolist() == expected
        outcomes.update(expected)
    assert outcomes == {True, False}


@pytest.mark.parametrize("best", [1, 2, 100])
def test_words_of_the_best_entries_that_occur(best):
    sizes = set()
    for seed in range(20):
        rng = random.Random(seed)
        sentences = [random_sentence(rng, rng.randint(0, 7)) for _ in range(4)]
        table, texts = table_of(random_model(rng, sentences[0]), sentences)
        words = table.source_symbols.words
        expected = []
        for sentence in sentences:
            line = set()
            for source in range(len(table.first) - 1):
                offsets = table.index.offsets
                phrase = [words[w] for w in table.index.words[offsets[source] : offsets[source + 1]]]
                positions = range(len(sentence) - len(phrase) + 1)
                if any(sentence[i : i + len(phrase)] == phrase for i in positions):
                    entries = range(table.first[source], table.first[source + 1])
                    ranked = sorted(entries, key=lambda entry: -table.scores[entry].sum())[:best]
                    line.update(w for entry in ranked if not table.copies[entry] for w in table.targets[entry])
            expected.append(sorted(line))
        assert [line.tolist() for line in offered_words(table, texts, best)] == expected
        sizes.update(map(len, expected))
    assert {0, 1, 2} <= sizes


def test_copies_are_not_translations():
    model = random_model(random.Random(1), [b"a"])
    model.entries.clear()
    table, texts = table_of(model, [[b"a", b"b"], []])
    assert table.copies.all()
    assert covered_tokens(table, texts).tolist() == [False, False]
    assert offered_words(table, texts, 3).lengths.tolist() == [0, 0]
