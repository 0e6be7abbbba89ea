"""Exact search compared with all pairs, with ties and zero vectors; approximate search compared with exact search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.bitext.nearest import (
    AGREEMENT,
    COLUMNS,
    LARGEST,
    SCALE,
    approximately_nearest,
    nearest_both_ways,
    whole_numbers,
)
from phrasetool.text_encoders.margins import unit_rows
from tests import naive_mining


def units(rows):
    return unit_rows(np.asarray(rows, np.float32)).astype(np.float16)


def vectors(seed, count, dimension=8):
    return units(np.random.default_rng(seed).normal(size=(count, dimension)))


# Few values: many ties, equal rows and rows of zeros.
COARSE = st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(COARSE, COARSE, st.integers(1, 5), st.integers(1, 7), st.integers(1, 3))
def test_ties_duplicates_and_zeros(sources, targets, k, block, threads):
    s, t = units(sources), units(targets)
    forward, backward = nearest_both_ways(s, t, k, threads, block)
    assert forward.rows.tolist() == naive_mining.nearest(s, t, k)
    assert backward.rows.tolist() == naive_mining.nearest(t, s, k)
    for i, j in zip(*np.nonzero(forward.rows >= 0), strict=True):
        assert forward.cosines[i, j] == pytest.approx(naive_mining.cosine(s[i], t[forward.rows[i, j]]), abs=1e-6)
    assert not forward.cosines[forward.rows < 0].any()


def test_many_more_than_a_tile():
    s, t = vectors(1, 700, 5), vectors(2, 2 * COLUMNS + 30, 5)
    forward, backward = nearest_both_ways(s, t, 3)
    near = np.rint(s.astype(np.float32) * SCALE).astype(np.int64) @ np.rint(t.astype(np.float32) * SCALE).astype(int).T
    np.testing.assert_array_equal(forward.rows, np.argsort(-near, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(backward.rows, np.argsort(-near.T, axis=1, kind="stable")[:, :3])


@pytest.mark.parametrize(("threads", "block"), [(1, 1), (2, 1), (2, 13), (3, 512), (2, 5000)])
def test_threads_and_blocks_change_nothing(threads, block):
    s, t = vectors(3, 300, 24), vectors(4, 1500, 24)
    expected = nearest_both_ways(s, t, 4)
    for expected_side, side in zip(expected, nearest_both_ways(s, t, 4, threads, block), strict=True):
        assert expected_side.rows.tobytes() == side.rows.tobytes()
        assert expected_side.cosines.tobytes() == side.cosines.tobytes()


def test_the_nearest_is_that_of_exact_cosines():
    s = vectors(5, 200, 64)
    t = units(s.astype(np.float32) + np.random.default_rng(6).normal(0, 0.05, s.shape))
    forward, _ = nearest_both_ways(s, t, 1)
    assert (forward.rows[:, 0] == np.argmax(s.astype(np.float64) @ t.T.astype(np.float64), 1)).mean() > 0.99


def test_products_are_whole_numbers_that_float32_holds():
    rng = np.random.default_rng(7)
    for dimension in (3, 300, LARGEST):
        # Rounding increases the length of these vectors most.
        row = units(np.sign(rng.normal(size=(1, dimension))))
        whole = whole_numbers(row).astype(np.int64)
        assert 0 < int((whole * whole).sum()) < 2**24
        assert int((whole * whole).sum()) == int(whole_numbers(row)[0] @ whole_numbers(row)[0])


@pytest.mark.parametrize(("dimensions", "k", "block"), [((3, 4), 1, None), ((3, 3), 0, None), ((3, 3), 1, 0)])
def test_invalid_arguments_are_refused(dimensions, k, block):
    with pytest.raises(ValueError, match="expected"):
        nearest_both_ways(vectors(1, 4, dimensions[0]), vectors(1, 4, dimensions[1]), k, 1, block)


pytest.importorskip("faiss", reason="the extra `mine` is not installed")


def clustered(seed, count=6000, dimension=32):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(count // 20, dimension))
    rows = centres[rng.integers(0, len(centres), count)] + rng.normal(size=(count, dimension))
    rows[::500] = 0
    return unit_rows(rows.astype(np.float32)).astype(np.float16)


def test_the_share_of_agreement_is_right_for_any_number_of_threads():
    own, others = clustered(1), clustered(2)
    exact = nearest_both_ways(own, others, 4)[0]
    result, accuracy = approximately_nearest(own, others, 4)
    assert accuracy.share >= AGREEMENT
    assert accuracy.probed < accuracy.cells
    known = own.any(1)
    measured = (result.rows[known, 0] == exact.rows[known, 0]).mean()
    assert abs(measured - accuracy.share) < 0.02
    assert measured < 1
    assert (result.rows[~known] == -1).all()
    assert others[result.rows[known]].any(2).all()
    assert (np.diff(result.cosines[known], axis=1) <= 0).all()
    repeated, repeated_accuracy = approximately_nearest(own, others, 4, threads=2)
    assert repeated.rows.tobytes() == result.rows.tobytes()
    assert repeated.cosines.tobytes() == result.cosines.tobytes()
    assert repeated_accuracy == accuracy


def test_few_vectors_are_all_compared():
    own, others = clustered(1, 40), clustered(2, 30)
    result, accuracy = approximately_nearest(own, others, 50)
    exact = nearest_both_ways(own, others, 50)[0]
    # Exact search rounds, so the order of cosines within 1e-4 may differ.
    np.testing.assert_allclose(result.cosines, exact.cosines, atol=3e-4)
    assert [set(row) for row in result.rows] == [set(row) for row in exact.rows]
    assert accuracy.probed == accuracy.cells == 1


def test_zero_vectors_have_no_neighbours():
    zeros = np.zeros((3, 4), np.float16)
    result, accuracy = approximately_nearest(zeros, clustered(1, 40, 4), 2)
    assert (result.rows == -1).all()
    assert accuracy.sample == 0
    with pytest.raises(ValueError, match="equal dimension"):
        approximately_nearest(zeros, clustered(1, 40, 5), 2)
