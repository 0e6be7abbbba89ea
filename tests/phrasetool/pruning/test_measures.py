import numpy as np
import pytest

from phrasetool.pruning.measures import COUNTS, OPINION, SIMILARITIES, Measures, UnmeasuredError

FAULTY = np.zeros(3, np.bool_)


def measures(**more):
    return Measures(np.array([0, 3]), np.array([1]), FAULTY, {COUNTS: np.ones(3, np.float32)}, **more)


def test_what_was_measured_is_there_and_what_was_not_is_named():
    known = measures()
    assert len(known) == 3
    assert COUNTS in known
    assert SIMILARITIES not in known
    assert known[COUNTS].tolist() == [1, 1, 1]
    with pytest.raises(UnmeasuredError, match=r"^the table was measured without its similarities$"):
        known[SIMILARITIES]


def test_more_columns_leave_the_measures_they_came_to_as_they_were():
    known = measures(alpha=2.5)
    more = known.with_columns({COUNTS: np.full(3, 7, np.float32), OPINION: FAULTY})
    assert (more[COUNTS].tolist(), more[OPINION].tolist(), more.alpha) == ([7, 7, 7], [False] * 3, 2.5)
    assert known[COUNTS].tolist() == [1, 1, 1]
    assert OPINION not in known


@pytest.mark.parametrize(("measure", "shape"), [(COUNTS, (0,)), (OPINION, (0,)), (SIMILARITIES, (0, 2))])
def test_a_column_of_no_entries(measure, shape):
    assert measure.empty().shape == shape
    assert measure.empty().dtype == measure.dtype
