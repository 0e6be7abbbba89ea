"""Where fields are, and what compositions are told of entries."""

import numpy as np

from moses_compat.measures.field_places import ComposedEntries, FieldPlaces
from moses_compat.tables.parser import TableParser


def test_places_are_those_of_the_rows_that_are_asked_for():
    text = np.frombuffer(b"a ||| x ||| 1\na ||| y ||| 1\nb c ||| x ||| 1\n[X] d ||| z ||| 1\n", np.uint8)
    block, _ = TableParser(scores=1)(0, text)
    places = FieldPlaces.of(block, np.array([1, 2, 3]))
    data = text.tobytes()
    targets = zip(places.source_ends, places.target_ends, strict=True)
    assert [data[a:b] for a, b in zip(places.starts, places.source_ends, strict=True)] == [b"a ", b"b c ", b"[X] d "]
    assert [data[a:b] for a, b in targets] == [b"||| y ", b"||| x ", b"||| z "]
    assert (places.heads.tolist(), places.groups.tolist(), places.words.tolist()) == ([0, 1, 2], [0, 1, 2], [1, 2, 1])


def test_entries_of_compositions():
    text = np.frombuffer(b"a ||| x ||| 1\na ||| y z ||| 1\nb c ||| x ||| 1\n[X] d e ||| z ||| 1\n", np.uint8)
    block, _ = TableParser(scores=1)(0, text)
    found = ComposedEntries.of(text, FieldPlaces.of(block, np.arange(4)), np.zeros(4, np.float32))
    assert (found.sources, found.rules) == (3, 1)
    # Labels are words of a source, too.
    assert found.entries.levels.tolist() == [1, 1, 2, 3]
    assert found.entries.counts == {1: 2, 2: 1, 3: 1}
