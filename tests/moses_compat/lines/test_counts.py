"""The counts of a line against slow Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.counts import read_counts
from tests import naive


@pytest.mark.parametrize(
    ("rest", "counts"),
    [
        (b"||| 0-0 ||| 5 4 3", [5, 4, 3]), (b"|||||| 5 4 3|||", [5, 4, 3]), (b"||| x-y ||| 1 2\r", [1, 2, math.nan]),
        (b"||| ||| 1 x 3 4", [1, math.nan, 3]), (b"||| 1 2 3", [math.nan] * 3), (b"", [math.nan] * 3),
    ],
)  # fmt: skip
def test_counts(rest, counts):
    text = np.frombuffer(rest + b"\n", np.uint8)
    np.testing.assert_array_equal(read_counts(text, np.array([0]), np.array([len(text)])), [counts])


NUMBERS = st.sampled_from([b"1", b"2.5", b"0", b"1e+06", b"-3", b"x", b"nan", b"inf", b"5\r"])
BLANKS = st.sampled_from([b" ", b"  ", b"\t", b" \r "])
FIELD = st.tuples(st.lists(st.tuples(NUMBERS, BLANKS), max_size=5), st.sampled_from([b"", b"||| 7 7 7"]))


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(NUMBERS, BLANKS), max_size=5), st.sampled_from([b"", b"||| 7 7 7"])), max_size=6
    )
)
def test_any_counts(lines):
    rows, text, starts, ends = [], b"", [], []
    for numbers, more in lines:
        field = b" " + b"".join(number + blank for number, blank in numbers)
        starts.append(len(text) + 1)
        text += b"1||| 0-0 |||" + field + more + b"\n"
        ends.append(len(text))
        row = [math.nan] * 3
        for column, token in enumerate(field.replace(b"\r", b" ").split()[:3]):
            if naive.number_fault(token) == "ok":
                row[column] = float(np.float32(float(token)))
        rows.append(row)
    found = read_counts(np.frombuffer(text, np.uint8), np.array(starts, np.int64), np.array(ends, np.int64))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(rows).reshape(-1, 3))
