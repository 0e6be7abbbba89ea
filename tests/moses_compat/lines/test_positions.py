"""Numbers of positions against slow Python."""

import re

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from moses_compat.lines.positions import MAX_POSITION, read_position


@given(st.from_regex(rb"\A[0-9]{0,12}[^0-9]{0,3}[0-9]?\Z"), st.integers(0, 3))
@example(b"32767", 0)
@example(b"32768", 0)
@example(b"99999999999999999999999999", 0)
@example(b"007-1", 0)
def test_digits_up_to_what_is_none(text, start):
    start = min(start, len(text))
    digits = re.match(rb"[0-9]*", text[start:])[0]
    value = min(int(digits), MAX_POSITION + 1) if digits else -1
    assert read_position(np.frombuffer(text, np.uint8), start, len(text)) == (value, start + len(digits))


def test_a_field_may_end_within_the_digits():
    assert read_position(np.frombuffer(b"1234", np.uint8), 1, 3) == (23, 3)
