import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.disk.partitions import Partitions, drawn_cuts, even_cuts, parts_for


@given(st.lists(st.lists(st.integers(0, 50), max_size=30), max_size=5), st.integers(1, 9), st.booleans())
def test_each_part_has_its_numbers_in_the_order_they_came(batches, parts, even):
    pieces = [np.array(batch, np.int64) for batch in batches]
    every = np.concatenate([np.zeros(0, np.int64), *pieces])
    cuts = even_cuts(51, parts) if even else drawn_cuts(lambda: pieces, len(every), parts)
    found = Partitions(None, [("number", np.int64), ("place", np.int32)], cuts)
    done = 0
    for piece in pieces:
        found.add(piece, number=piece, place=np.arange(done, done + len(piece)))
        done += len(piece)
    bounds = list(found.bounds(0, 51))
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 51
    assert len(bounds) == len(found) <= parts
    for part, (first, last) in enumerate(bounds):
        places = np.flatnonzero((every >= first) & (every < last))
        records = found.take(part)
        np.testing.assert_array_equal(records["place"], places)
        np.testing.assert_array_equal(records["number"], every[places])


def test_drawn_cuts_part_evenly_what_is_not_even():
    numbers = (np.random.default_rng(1).random(200_000) ** 4 * 1e6).astype(np.int64)
    cuts = drawn_cuts(lambda: np.array_split(numbers, 9), len(numbers), 10)
    sizes = np.bincount(np.searchsorted(cuts, numbers, "right"))
    assert len(sizes) == 10
    assert sizes.max() < 1.3 * len(numbers) / 10


@pytest.mark.parametrize(("rows", "memory", "parts"), [(0, 100, 1), (100, 1000, 1), (101, 1000, 2), (10**9, 1, 200)])
def test_how_many_parts(rows, memory, parts):
    assert parts_for(rows, 10, memory) == parts
