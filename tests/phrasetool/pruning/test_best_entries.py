from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pruning.best_entries import best_of_groups


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=6)),
    st.integers(0, 4),
)
def test_best_of_groups(groups, count):
    offsets = np.cumsum([0, *map(len, groups)])
    entries = [entry for group in groups for entry in group]
    keys, eligible = (np.array([entry[k] for entry in entries], kind) for k, kind in ((0, float), (1, bool)))
    expected = set()
    for first, last in pairwise(offsets):
        ranked = sorted((i for i in range(first, last) if eligible[i]), key=lambda i: (-keys[i], i))
        expected |= set(ranked[:count])
    assert set(np.flatnonzero(best_of_groups(offsets, keys, count, eligible))) == expected
