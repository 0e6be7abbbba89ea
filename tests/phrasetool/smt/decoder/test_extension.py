import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.decoder.extension import future_after
from phrasetool.smt.decoder.hypotheses import (
    cover,
)
from tests.phrasetool.smt.decoder.drawn_spans import EMPTY, spans


@given(spans(length=st.integers(1, 12), most=5), st.data())
def test_future_after_is_the_sum_over_the_gaps(drawn, data):
    n, found = drawn
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    future = rng.normal(-5, 2, (n + 1, n + 1))
    future[np.arange(n + 1), np.arange(n + 1)] = 0

    def total(covered):
        """Over the maximal runs of words that are not covered."""
        result, i = 0.0, 0
        while i < n:
            j = i
            while j < n and j not in covered:
                j += 1
            result += future[i, j]
            i = j + 1
        return result

    gap, mask, covered = 0, EMPTY, set()
    before = future[0, n]
    for start, end in found:
        before = future_after(future, before, gap, np.uint64(mask), n, start, end)
        gap, mask = cover(gap, np.uint64(mask), start, end)
        covered |= set(range(start, end + 1))
        assert before == pytest.approx(total(covered), abs=1e-9)
