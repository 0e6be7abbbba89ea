import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from phrasetool.pair_classifier.batch_negatives import batch_negatives, epoch_batches


@given(hnp.arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))), st.integers(0, 6), st.integers(0, 99))
def test_each_source_gets_distinct_wrong_targets(wrong, count, seed):
    rows, columns = batch_negatives(wrong, count, np.random.default_rng(seed))
    assert wrong[rows, columns].all()
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    assert np.bincount(rows, minlength=len(wrong)).tolist() == np.minimum(wrong.sum(1), count).tolist()


def test_all_are_drawn_alike():
    wrong = ~np.eye(12, dtype=bool)
    rng = np.random.default_rng(1)
    counts = np.zeros((12, 12))
    for _ in range(400):
        np.add.at(counts, batch_negatives(wrong, 5, rng), 1)
    expected = 400 * 5 / 11
    assert np.abs(counts[wrong] - expected).max() < 5 * np.sqrt(expected)


@given(st.integers(1, 300), st.integers(1, 40))
def test_batches_have_every_pair_once_and_about_one_size(pairs, size):
    batches = epoch_batches(pairs, size, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(pairs))
    sizes = [len(batch) for batch in batches]
    assert len(sizes) == -(-pairs // size)
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
