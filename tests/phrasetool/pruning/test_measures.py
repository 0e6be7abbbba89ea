import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pruning.measures import (
    COUNTS,
    PROBABILITIES,
    SCORED,
    SIMILARITIES,
    MeasuredTable,
    Measures,
    UnmeasuredError,
)
from tests.phrasetool.pruning.measured_tables import MEASURES, cut_into, on_disk, tables

MALFORMED = np.zeros(3, np.bool_)


def measures(**more):
    return Measures(np.array([0, 3]), np.array([1]), MALFORMED, {COUNTS: np.ones(3, np.float32)}, **more)


def test_a_missing_measure_is_named():
    known = measures()
    assert len(known) == 3
    assert COUNTS in known
    assert SIMILARITIES not in known
    assert known[COUNTS].tolist() == [1, 1, 1]
    with pytest.raises(UnmeasuredError, match=r"^the table was measured without its similarities$"):
        known[SIMILARITIES]


def test_adding_columns_does_not_change_the_original_measures():
    known = measures(alpha=2.5)
    more = known.with_columns({COUNTS: np.full(3, 7, np.float32), SCORED: MALFORMED})
    assert (more[COUNTS].tolist(), more[SCORED].tolist(), more.alpha) == ([7, 7, 7], [False] * 3, 2.5)
    assert known[COUNTS].tolist() == [1, 1, 1]
    assert SCORED not in known


@pytest.mark.parametrize(("measure", "shape"), [(COUNTS, (0,)), (SCORED, (0,)), (SIMILARITIES, (0, 2))])
def test_a_column_of_no_entries(measure, shape):
    assert measure.empty().shape == shape
    assert measure.empty().dtype == measure.dtype


@given(tables(), st.integers(1, 7), st.data())
def test_parts_make_up_the_table(drawn, part, data):
    measures, _ = drawn
    cuts = data.draw(st.lists(st.integers(0, len(measures)), max_size=5))
    table = on_disk(measures, part, cuts)
    assert len(table) == len(measures)
    whole = table.whole()
    parts = list(table.parts())
    for block in (whole, *parts):
        rows = slice(block.first, block.first + len(block))
        np.testing.assert_array_equal(block.malformed, measures.malformed[rows])
        np.testing.assert_array_equal(block[COUNTS], measures[COUNTS][rows])
        assert block.total(COUNTS) == measures.total(COUNTS)
    heads = [head + block.first for block in parts for head in block.group_offsets[:-1].tolist()]
    assert [*heads, len(measures)] == measures.group_offsets.tolist() == whole.group_offsets.tolist()
    lengths = np.concatenate([np.zeros(0, np.int64), *(block.source_lengths for block in parts)])
    np.testing.assert_array_equal(lengths, measures.source_lengths)
    assert sum(map(len, parts)) == len(measures)
    # Only a part of a single source may be longer.
    assert all(len(block) <= part or len(block.source_lengths) == 1 for block in parts)


def test_lines_that_begin_and_end_inside_of_a_source():
    groups, lengths, malformed = on_disk(MEASURES).lines(1, 4)
    assert (groups.tolist(), lengths.tolist(), malformed.tolist()) == ([0, 2, 3], [1, 2], [False] * 3)


def test_sums_are_those_of_numpy():
    """Sums are equal to the last bit, whatever the parts are."""
    values = (np.random.default_rng(1).random(300_000) * 1000).astype(np.float32)
    table = MeasuredTable([COUNTS])
    for part in cut_into(len(values), [5, 70_001, 123_456]):
        size = part.stop - part.start
        measures = type(MEASURES)(
            np.arange(size + 1), np.ones(size, np.int64), np.zeros(size, bool), {COUNTS: values[part]}
        )
        table.append(measures)
    assert next(table.parts()).total(COUNTS) == values.sum(dtype=np.float64)


def test_a_measure_that_is_added_later():
    table = on_disk(MEASURES, 2)
    column = table.new_column(np.float32)
    column.append(np.arange(5, dtype=np.float32))
    table.add(COUNTS, column)
    assert [part[COUNTS].tolist() for part in table.parts()] == [[0, 1, 2], [3, 4]]
    assert COUNTS in table
    assert PROBABILITIES in next(table.parts())
