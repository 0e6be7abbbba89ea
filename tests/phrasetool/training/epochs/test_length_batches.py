from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.training.epochs.length_batches import length_batches


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1), st.integers(1, 9), st.integers(0, 99))
def test_batches_have_every_example_once_and_neighbouring_lengths(lengths, size, seed):
    first, second = np.array(lengths).T
    rng = np.random.default_rng(seed)
    batches = length_batches(rng.permutation(len(first)), [first, second], size, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(first)))
    assert sorted(map(len, batches))[1:] == [size] * (len(batches) - 1)
    keys = [[(first[number], second[number]) for number in batch] for batch in batches]
    assert all(one == sorted(one) for one in keys)
    assert all(one[-1] <= other[0] for one, other in pairwise(sorted(keys, key=lambda one: (one[0], one[-1]))))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 4))
def test_pools_are_sorted_each_by_itself_and_keep_the_order_of_equal_lengths(lengths, size, pool):
    lengths = np.array(lengths)
    order = np.random.default_rng(len(lengths)).permutation(len(lengths))
    batches = length_batches(order, [lengths], size, np.random.default_rng(1), pool)
    naive = []
    for first in range(0, len(order), size * pool):
        part = sorted(order[first : first + size * pool].tolist(), key=lambda number: lengths[number])
        naive += [part[start : start + size] for start in range(0, len(part), size)]
    assert sorted(batch.tolist() for batch in batches) == sorted(naive)


def test_the_order_of_batches_is_drawn():
    lengths = np.arange(100)
    drawn = [
        [batch[0] for batch in length_batches(lengths, [lengths], 5, np.random.default_rng(seed))] for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != sorted(drawn[0])
