from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases, gathered_runs, prefix_sums
from tests.variants import for_each

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=12)


def as_lists(phrases):
    return [phrase.tolist() for phrase in phrases]


@given(LISTS)
def test_lists(lists):
    phrases = Phrases.from_lists(lists)
    assert len(phrases) == len(lists)
    assert as_lists(phrases) == lists
    assert phrases.lengths.tolist() == [len(phrase) for phrase in lists]
    assert phrases.words.dtype == np.int32
    assert phrases.offsets.dtype == np.int64


@given(LISTS, st.data())
def test_select(lists, data):
    phrases = Phrases.from_lists(lists)
    last = len(lists) - 1
    index = data.draw(st.lists(st.integers(0, last), max_size=20)) if lists else []
    assert as_lists(phrases.select(np.array(index, np.int64))) == [lists[i] for i in index]
    mask = data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists)))
    chosen = phrases.select(np.array(mask, np.bool_))
    assert as_lists(chosen) == [phrase for phrase, kept in zip(lists, mask, strict=True) if kept]
    assert chosen.offsets[0] == 0


@given(LISTS, st.integers(0, 8), st.integers(-1, 1))
def test_padded(lists, length, fill):
    phrases = Phrases.from_lists(lists)
    if any(len(phrase) > length for phrase in lists):
        with pytest.raises(ValueError, match="more than"):
            phrases.padded(length, fill)
    else:
        matrix = phrases.padded(length, fill)
        assert matrix.shape == (len(lists), length)
        assert matrix.tolist() == [phrase + [fill] * (length - len(phrase)) for phrase in lists]


@given(LISTS, st.data())
def test_part(lists, data):
    phrases = Phrases.from_lists(lists)
    first = data.draw(st.integers(0, len(lists)))
    last = data.draw(st.integers(first, len(lists)))
    assert as_lists(phrases.part(first, last)) == lists[first:last]
    assert phrases.part(first, last).offsets[0] == 0


@given(st.lists(LISTS, max_size=4))
def test_concatenate(parts):
    phrases = Phrases.concatenate([Phrases.from_lists(part) for part in parts])
    assert as_lists(phrases) == [phrase for part in parts for phrase in part]
    assert phrases.words.dtype == np.int32
    assert phrases.offsets.dtype == np.int64


@for_each(
    "kind", [list, np.array, lambda counts: np.array(counts, np.int32), lambda counts: np.array(counts, np.uint8)]
)
@for_each("counts", [[], [3], [2, 0, 5], [True, False, True]])
def test_prefix_sums(kind, counts):
    sums = prefix_sums(kind(counts))
    assert sums.dtype == np.int64
    assert sums.tolist() == [sum(counts[:i]) for i in range(len(counts) + 1)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=20))
def test_runs_are_gathered_one_after_another(runs):
    starts, lengths = (np.array([run[k] for run in runs], np.int64) for k in range(2))
    offsets, positions = gathered_runs(starts, lengths)
    parts = [positions[a:b].tolist() for a, b in pairwise(offsets)]
    assert parts == [list(range(start, start + length)) for start, length in runs]
