"""Numbers of positions against slow Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.lines.numbers import (
    MAX_POSITION,
    MAX_WIDTH,
    read_position,
    write_integer,
    write_millionths,
    write_number,
)


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


def written(write, value):
    out = np.zeros(40, np.uint8)
    return out[: write(out, 0, value)].tobytes().decode()


def check(values):
    values = np.asarray(values, np.float64).tolist()
    assert [written(write_number, value) for value in values] == [f"{value:g}" for value in values]


@settings(max_examples=300)
@given(st.lists(st.floats()))
def test_any_double(values):
    check(values)


@settings(max_examples=300)
@given(st.lists(st.floats(width=32)))
def test_any_float(values):
    check(values)


@settings(max_examples=300)
@given(
    st.integers(100_000, 999_999), st.integers(-320, 300), st.sampled_from(["5", "49999999", "50000001", "4", "", "9"])
)
def test_near_halves(digits, exponent, more):
    check([float(f"{digits}.{more}e{exponent}")])


def test_exact_halves():
    """Fractions with a power of two below have seven digits that end in 5, exactly; those go to the even neighbour."""
    check((np.arange(1, 3000)[:, None] / 2.0 ** np.arange(8, 30)).ravel())
    check([1 / 512, 1 / 1024, 3 / 1024, 123456.5, 123457.5])


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-5, 1e-4, 999999.5, 9999995, 1e6, 1e5, 5e-324, 1.7976931348623157e308])
def test_edges(value):
    check([value, -value])


def test_width():
    assert len(written(write_number, -1.23456789e-308)) <= MAX_WIDTH


@given(st.integers(0, 12) | st.integers(0, 2**63 - 1))
def test_whole_numbers_are_written_as_python_does(value):
    assert written(write_integer, value) == str(value)


@given(st.integers(0, 3 * 10**6) | st.integers(0, 2**63 - 1))
def test_six_decimals_lose_their_zeros(millionths):
    whole, rest = divmod(millionths, 10**6)
    assert written(write_millionths, millionths) == f"{whole}.{rest:06}".rstrip("0").rstrip(".")
