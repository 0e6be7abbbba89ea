"""`pairwise` covers every pair of values of two factors."""

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tests.pairwise import pairwise


@given(st.lists(st.integers(1, 7), min_size=2, max_size=5))
def test_rows_contain_every_pair_and_are_few(sizes):
    factors = [[[f, i] for i in range(size)] for f, size in enumerate(sizes)]
    rows = pairwise(*factors)
    for f, g in combinations(range(len(sizes)), 2):
        together = [(row[f], row[g]) for row in rows]
        assert all(pair in together for pair in product(factors[f], factors[g]))
    largest, second = sorted(sizes)[:-3:-1]
    assert largest * second <= len(rows) <= largest * second + sum(sizes)
