"""Which sources come back, against a dictionary."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.tables.returning_sources import SourceGroups, read_prefixes
from tests.commands import write

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


SOURCES = st.lists(st.lists(st.sampled_from([b"a", b"b", b"!", b"ab"]), min_size=1, max_size=3), min_size=1, max_size=9)


@given(SOURCES, st.booleans())
def test_beginnings_of_sources(workspace, sources, labelled):
    """Beginnings that come back, and the keys of CreateProbingPT, against slow Python."""
    text = b"".join(b" ".join([*source, *[b"[X]"] * labelled]) + b" ||| x ||| 1\n" for source in sources)
    with Input(str(write(workspace / "prefixes", text))) as source:
        found = read_prefixes(source, labelled)
    seen, returning, first, groups = set(), 0, 0, []
    before = []
    for number, words in enumerate(sources, 1):
        common = next((k for k in range(len(words)) if words[: k + 1] != before[: k + 1]), len(words))
        for size in range(common + 1, len(words) + 1):
            beginning = tuple(words[:size])
            if beginning in seen:
                returning, first = returning + 1, first or number
            seen.add(beginning)
        if words != before:
            groups.append(max(len(words) - common, 1))
        before = words
    assert (found.returning, found.first, found.sources) == (returning, first, len(groups))
    assert found.keys == sum(groups[:-1]) + 1
