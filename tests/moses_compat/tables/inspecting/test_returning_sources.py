"""Which sources come back, against a dictionary."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from moses_compat.tables.inspecting.returning_sources import SourceGroups

# Few hashes, so that many come back; 0 is no source.  A byte holds sizes up to 255.
GROUP = st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 254, 255, 256, 511, 70_000]))


@given(st.lists(st.lists(GROUP, max_size=6), max_size=5))
@example([[(1, 256), (1, 1)]])
@example([[(0, 1), (0, 1)]])
@example([[(3, 1)], [], [(2, 300), (3, 1), (2, 1)]])
def test_groups_that_come_back_and_the_first_line_of_them(blocks):
    groups = SourceGroups()
    seen, again, line, first = set(), 0, 1, 0
    for block in blocks:
        hashes, sizes = np.array(block, np.int64).reshape(-1, 2).T.copy()
        groups.add(hashes, sizes)
        # What was given may be written over afterwards.
        hashes[:] = sizes[:] = -1
        for number, size in block:
            if number and number in seen:
                again += 1
                first = first or line
            seen.add(number)
            line += size
    assert groups.returning() == (again, first)
