"""Multikey quicksort against Python's sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.kernels.sorting import sort_strings


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(0, 300),
    width=st.integers(1, 4),
    largest=st.sampled_from([1, 5, 2**63]),
    part=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_rows_are_sorted_by_their_first_letters(seed, count, width, largest, part):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, largest, (count, width), np.uint64, endpoint=True)
    deepest = int(rng.integers(1, width + 1))
    low, high = sorted(int(share * count) for share in part)
    order = np.arange(count)
    sort_strings(rows.ravel(), width, order, low, high, 0, deepest, False)
    assert sorted(order[low:high].tolist()) == list(range(low, high))
    keys = [tuple(rows[i, :deepest].tolist()) for i in order]
    assert keys[low:high] == sorted(keys[low:high])
    assert order[:low].tolist() + order[high:].tolist() == [*range(low), *range(high, count)]


@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(0, 6), max_size=60), deepest=st.integers(1, 8))
def test_suffixes_end_with_their_sentence(seed, lengths, deepest):
    rng = np.random.default_rng(seed)
    sentences = [rng.integers(1, 3, length).tolist() for length in lengths]
    letters = np.array([letter for sentence in sentences for letter in [*sentence, 0]], np.uint32)
    suffixes = np.flatnonzero(letters).astype(np.int32)
    keys = {i: letters[i : i + deepest].tolist() for i in suffixes.tolist()}
    keys = {i: key[: key.index(0)] if 0 in key else key for i, key in keys.items()}
    sort_strings(letters, 1, suffixes, 0, len(suffixes), 0, deepest, True)
    assert [keys[i] for i in suffixes.tolist()] == sorted(keys.values())
