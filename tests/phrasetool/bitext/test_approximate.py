"""Approximate search finds nearly what exact search finds, and says how nearly."""

import numpy as np
import pytest

from phrasetool.bitext.approximate import AGREEMENT, approximately_nearest
from phrasetool.bitext.nearest import nearest_both_ways
from phrasetool.text_encoders.margins import unit_rows

pytest.importorskip("faiss", reason="the extra `mine` is not installed")


def clustered(seed, count=6000, dimension=32):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(count // 20, dimension))
    rows = centres[rng.integers(0, len(centres), count)] + rng.normal(size=(count, dimension))
    rows[::500] = 0
    return unit_rows(rows.astype(np.float32)).astype(np.float16)


def test_agrees_as_it_says_whatever_the_threads():
    own, others = clustered(1), clustered(2)
    exact = nearest_both_ways(own, others, 4)[0]
    found, told = approximately_nearest(own, others, 4)
    assert told.share >= AGREEMENT
    assert told.probed < told.cells
    known = own.any(1)
    measured = (found.rows[known, 0] == exact.rows[known, 0]).mean()
    assert abs(measured - told.share) < 0.02
    assert measured < 1
    assert (found.rows[~known] == -1).all()
    assert others[found.rows[known]].any(2).all()
    assert (np.diff(found.cosines[known], axis=1) <= 0).all()
    again, same = approximately_nearest(own, others, 4, threads=2)
    assert again.rows.tobytes() == found.rows.tobytes()
    assert again.cosines.tobytes() == found.cosines.tobytes()
    assert same == told


def test_few_vectors_are_all_looked_at():
    own, others = clustered(1, 40), clustered(2, 30)
    found, told = approximately_nearest(own, others, 50)
    exact = nearest_both_ways(own, others, 50)[0]
    # Exact search rounds: the order within a tenth of a thousandth may differ.
    np.testing.assert_allclose(found.cosines, exact.cosines, atol=3e-4)
    assert [set(row) for row in found.rows] == [set(row) for row in exact.rows]
    assert told.probed == told.cells == 1


def test_nothing_known():
    none = np.zeros((3, 4), np.float16)
    found, told = approximately_nearest(none, clustered(1, 40, 4), 2)
    assert (found.rows == -1).all()
    assert told.sample == 0
    with pytest.raises(ValueError, match="one dimension"):
        approximately_nearest(none, clustered(1, 40, 5), 2)
