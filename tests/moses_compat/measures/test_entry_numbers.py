"""Entries as pairs of numbers against dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.measures.entry_numbers import EntryNumbering, FieldPlaces
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from tests import naive

TOKEN = st.sampled_from([b"a", b"b", b"&amp;", b"&", b"[X]", b"[X][X]"])
WORDS = st.lists(TOKEN, min_size=1, max_size=3).map(b" ".join)
ENTRY = st.tuples(WORDS, WORDS)
BLOCKS = st.lists(st.lists(ENTRY, min_size=1, max_size=8), max_size=4)


def numbering_of(blocks, skipped=()):
    """Number all entries of some tables but those whose running number is skipped; also the pairs that are left."""
    numbering, pairs, number = EntryNumbering(), [], 0
    for entries in blocks:
        text = np.frombuffer(b"".join(b"%s ||| %s ||| 1\n" % entry for entry in entries), np.uint8)
        block, _ = TableParser(scores=1)(0, text)
        rows = [i for i in range(len(entries)) if number + i not in skipped]
        number += len(entries)
        pairs += [entries[i] for i in rows]
        places = FieldPlaces.of(block, np.array(rows, np.int64))
        numbering.add(text, places)
    return numbering, pairs


@given(BLOCKS, st.sets(st.integers(0, 12), max_size=6))
def test_the_same_phrases_have_the_same_number(blocks, skipped):
    numbering, pairs = numbering_of(blocks, skipped)
    labelled = [any(map(naive.is_label, source.split())) for source, _ in pairs]
    if pairs and all(labelled):
        with pytest.raises(DataError, match=r"^t: all its entries are rules with labels such as \[X\]"):
            numbering.entries("t")
        return
    entries = numbering.entries("t")
    sides = (entries.sources, entries.source_numbers), (entries.targets, entries.target_numbers)
    for side, (phrases, numbers) in enumerate(sides):
        texts = [pair[side] for pair in pairs]
        assert len(numbers) == len(texts)
        assert len(phrases) == len(set(texts))
        assert len({(number, text) for number, text in zip(numbers.tolist(), texts, strict=True)}) == len(phrases)
        words = [phrases[number].tolist() for number in numbers]
        ids = {}
        for text, found in zip(texts, words, strict=True):
            assert len(found) == len(text.split())
            # A word is one number wherever it stands, and no other word is that.
            assert all(ids.setdefault(word, number) == number for word, number in zip(text.split(), found, strict=True))
        assert len(set(ids.values())) == len(ids)


def test_places_are_those_of_the_rows_that_are_asked_for():
    text = np.frombuffer(b"a ||| x ||| 1\na ||| y ||| 1\nb c ||| x ||| 1\n[X] d ||| z ||| 1\n", np.uint8)
    block, _ = TableParser(scores=1)(0, text)
    places = FieldPlaces.of(block, np.array([1, 2, 3]))
    data = text.tobytes()
    targets = zip(places.source_ends, places.target_ends, strict=True)
    assert [data[a:b] for a, b in zip(places.starts, places.source_ends, strict=True)] == [b"a ", b"b c ", b"[X] d "]
    assert [data[a:b] for a, b in targets] == [b"||| y ", b"||| x ", b"||| z "]
    assert (places.heads.tolist(), places.groups.tolist(), places.words.tolist()) == ([0, 1, 2], [0, 1, 2], [1, 2, 1])
