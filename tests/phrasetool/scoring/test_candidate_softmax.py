import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.scoring.candidate_softmax import candidate_probabilities


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 1000))
def test_it_is_the_softmax_of_each_group(sizes, seed):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.normal(0, 30, (offsets[-1], 2)).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = np.nan
    faulty = rng.random(len(values)) < 0.2
    found = candidate_probabilities(values, offsets, faulty)
    for first, last in itertools.pairwise(offsets):
        for c in range(2):
            said = [i for i in range(first, last) if not faulty[i] and not np.isnan(values[i, c])]
            powers = np.exp(values[said, c].astype(np.float64))
            assert found[said, c] == pytest.approx(powers / powers.sum())
            assert all(found[i, c] == 1 for i in range(first, last) if i not in said)
