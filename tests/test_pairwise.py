"""The combinations that other tests run: no two values of two options are left out."""

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tests.pairwise import pairwise


@given(st.lists(st.integers(1, 7), min_size=2, max_size=5))
def test_every_two_values_stand_together_and_the_largest_factors_decide_how_many_rows_there_are(sizes):
    factors = [[[f, i] for i in range(size)] for f, size in enumerate(sizes)]
    rows = pairwise(*factors)
    for f, g in combinations(range(len(sizes)), 2):
        together = [(row[f], row[g]) for row in rows]
        assert all(pair in together for pair in product(factors[f], factors[g]))
    largest, second = sorted(sizes)[:-3:-1]
    assert largest * second <= len(rows) <= largest * second + sum(sizes)
