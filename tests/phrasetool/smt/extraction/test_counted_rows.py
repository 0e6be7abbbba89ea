import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.errors import PhraseToolError
from phrasetool.smt.extraction.counted_rows import CountedRows, find

KEY, COUNTS = 3, 2
# Small values, so that keys repeat and words tie, and values that need all 64 bits.
word = st.one_of(st.integers(0, 2), st.sampled_from([2**63, 2**64 - 1]))
rows = st.lists(st.tuples(word, word, word, st.integers(1, 5), st.just(1)), max_size=60)


def as_array(listed):
    return np.array(listed, np.uint64).reshape(-1, KEY + COUNTS)


def naive(listed):
    sums = Counter()
    for *key, first, second in listed:
        sums[tuple(key), 0] += first
        sums[tuple(key), 1] += second
    return [(*key, sums[key, 0], sums[key, 1]) for key in sorted({key for key, _ in sums})]


def collect(counted):
    return [tuple(row) for block in counted.blocks(1) for row in block.tolist()]


@settings(max_examples=150)
@given(rows, st.sampled_from([1, 600, 2000, 1 << 20]), st.integers(1, 20), st.integers(1, KEY))
def test_agrees_with_naive(tmp_path_factory, listed, memory, step, leading):
    folder = tmp_path_factory.getbasetemp()
    with CountedRows(KEY, COUNTS, memory, str(folder)) as counted:
        for i in range(0, len(listed), step):
            counted.add(as_array(listed[i : i + step]))
        blocks = [block.tolist() for block in counted.blocks(leading)]
        assert [tuple(row) for block in blocks for row in block] == naive(listed)
        # Rows that share their leading words are never in two blocks.
        heads = [{tuple(row[:leading]) for row in block} for block in blocks]
        assert sum(map(len, heads)) == len(set().union(*heads))
        assert collect(counted) == naive(listed)
        assert [tuple(row) for row in counted.table().tolist()] == naive(listed)
        assert counted.spilled == bool(list(folder.glob("*.rows")))
    assert not list(folder.glob("*.rows"))


def test_sorts_many_rows():
    rng = np.random.default_rng(1)
    data = rng.integers(0, 1 << 64, (20_000, KEY + COUNTS), np.uint64)
    data[:, 0] = rng.integers(0, 30, len(data))
    data[: len(data) // 2, 1] = 7
    with CountedRows(KEY, COUNTS, 1 << 30) as counted:
        counted.add(data)
        table = counted.table()
        assert not counted.spilled
    order = np.lexsort(data[:, :KEY].T[::-1])
    assert np.array_equal(table, data[order])


def test_find():
    table = np.array([[0, 5], [2, 1], [2, 3], [2, 3], [9, 0]], np.uint64)
    keys = np.array([[2], [0], [3], [10], [9]], np.uint64)
    assert find(table, keys).tolist() == [1, 0, 4, 5, 4]
    assert find(table, np.array([[2, 2], [2, 3], [2, 4]], np.uint64)).tolist() == [2, 2, 4]
    assert find(table[:0], keys).tolist() == [0] * 5


def test_nowhere_to_spill(tmp_path):
    counted = CountedRows(KEY, COUNTS, 1, str(tmp_path / "none"))
    with pytest.raises(PhraseToolError, match="cannot write a temporary file: No such file"), counted:
        counted.add(np.arange(50, dtype=np.uint64).reshape(-1, 5))
    assert not os.listdir(tmp_path)
