import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.sentence_index import SentenceIndex
from phrasetool.smt.corpus.sentence_sets import count_common
from tests.phrasetool.smt.corpus.drawn_corpora import numbers_in

_SETS = st.lists(st.sets(st.integers(0, 40), max_size=30), min_size=1, max_size=8)


def as_sets(sets):
    """An index and its sets: word w occurs in the sentences of set w."""
    sentences = [[w for w, s in enumerate(sets) if i in s] for i in range(41)]
    index = SentenceIndex.build(Phrases.from_lists(sentences), len(sets))
    index._frequent = 12
    return index.find(Phrases.from_lists([[w] for w in range(len(sets))]))


@given(_SETS, _SETS, st.data())
def test_counts_what_sets_share(first, second, data):
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(first) - 1), st.integers(0, len(second) - 1)), max_size=20))
    rows, columns = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    common = count_common(as_sets(first), as_sets(second), rows, columns)
    assert common.tolist() == [len(first[a] & second[b]) for a, b in pairs]


@given(_SETS, st.data())
def test_intersects_sets(sets, data):
    wanted = data.draw(st.lists(st.lists(st.integers(0, len(sets) - 1), max_size=4), max_size=6))
    parts = Phrases.from_lists(wanted)
    found = as_sets(sets).intersect(parts.words.astype(np.int64), parts.offsets)
    expected = [sorted(set.intersection(*(sets[i] for i in part))) if part else [] for part in wanted]
    assert numbers_in(found) == expected


def test_sides_of_different_length_are_refused():
    sets = as_sets([{1}])
    with pytest.raises(ValueError, match="2 phrases"):
        count_common(sets, sets, np.zeros(2, np.int64), np.zeros(1, np.int64))
