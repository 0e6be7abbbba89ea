"""Numbers and score fields compared with naive Python."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.lines.numbers import (
    MAX_POSITION,
    MAX_WIDTH,
    log_scores,
    read_columns,
    read_position,
    scan_scores,
    write_integer,
    write_millionths,
    write_number,
)
from moses_compat.tables.parser import scan_lines
from phrasetool.errors import DataError
from tests import naive
from tests.variants import for_each

FAULTS = ["ok", "few fields", "not a number", "wrong count", "nan"]
GOOD_NUMBERS = [
    b"0.5", b"1", b"0", b"-1", b"+1", b"1e-5", b"1E+5", b".5", b"5.", b"-.25", b"2.718", b"5.25e-24", b"1.5599e+06",
    b"0.000352609", b"12345678901234567890", b"0.1234567890123456789", b"inf", b"-INF", b"+Inf", b"1e-44", b"00.10",
]  # fmt: skip
BAD_NUMBERS = [
    b"nan", b"-NaN", b"NAN", b"zero", b"0.1x", b"1e", b"1e+", b".", b"+", b"-", b"--1", b"1.2.3", b"e5", b"0x1p3",
    b"1,5", b"infinity", b"1_0", b"in", b"0.5\r", b"0-0", b"1e5.0", b"1-", b"\xb2", b"naninf",
]  # fmt: skip
NEARLY_WORDS = [b"inx", b"nab", b"ink", b"nap", b".inf", b"+.nan"]


@given(st.from_regex(rb"\A[0-9]{0,12}[^0-9]{0,3}[0-9]?\Z"), st.integers(0, 3))
@example(b"32767", 0)
@example(b"32768", 0)
@example(b"99999999999999999999999999", 0)
@example(b"007-1", 0)
def test_digits_up_to_another_character(text, start):
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
    """Fractions over powers of two include numbers of exactly seven digits that end in 5; these are rounded to even."""
    check((np.arange(1, 3000)[:, None] / 2.0 ** np.arange(8, 30)).ravel())
    check([1 / 512, 1 / 1024, 3 / 1024, 123456.5, 123457.5])


@for_each("value", [0.0, -0.0, 1e-5, 1e-4, 999999.5, 9999995, 1e6, 1e5, 5e-324, 1.7976931348623157e308])
def test_edges(value):
    check([value, -value])


def test_width():
    assert len(written(write_number, -1.23456789e-308)) <= MAX_WIDTH


@given(st.integers(0, 12) | st.integers(0, 2**63 - 1))
def test_integers_are_written_as_in_python(value):
    assert written(write_integer, value) == str(value)


@given(st.integers(0, 3 * 10**6) | st.integers(0, 2**63 - 1))
def test_six_decimals_without_trailing_zeros(millionths):
    whole, rest = divmod(millionths, 10**6)
    assert written(write_millionths, millionths) == f"{whole}.{rest:06}".rstrip("0").rstrip(".")


def array(data):
    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize("token", GOOD_NUMBERS, ids=repr)
def test_good_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token + b" 1\n"), 2, [0])
    assert FAULTS[scan.faults[0]] == "ok"
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12)


@pytest.mark.parametrize("token", BAD_NUMBERS + NEARLY_WORDS, ids=repr)
def test_bad_number(token):
    scan = scan_lines(array(b"a ||| b ||| 1 " + token + b" 1\n"), 3, [0])
    assert FAULTS[scan.faults[0]] == naive.number_fault(token) != "ok"


@given(st.from_regex(rb"\A[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?\Z"))
def test_value_of_a_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token), 1, [0])
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12, abs=0)


@given(st.integers(0, 2**53), st.integers(0, 22))
def test_a_number_of_up_to_fifteen_digits_is_rounded_correctly(digits, decimals):
    """A probability that is written as a threshold is not below it."""
    token = f"{digits}e-{decimals}".encode()
    scan = scan_lines(array(b"a ||| b ||| " + token + b" 0.803 2e-07"), 3, [0, 1, 2])
    assert scan.columns[0].tolist() == [float(token), 0.803, 2e-07]


@pytest.mark.parametrize(
    "token",
    [b"0e400", b"0." + b"0" * 330 + b"1e331", b"1" * 330 + b"e-330", b"1e-99999999999999999999", b"1." + b"1" * 400],
    ids=lambda token: token[:12].decode(),
)  # fmt: skip
def test_value_of_an_extreme_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token), 1, [0])
    assert FAULTS[scan.faults[0]] == "ok"
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12, abs=0)


TOKENS = [*GOOD_NUMBERS, *BAD_NUMBERS, *NEARLY_WORDS]


@given(
    st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from([b" ", b"  ", b"\t"])), max_size=5),
    st.sampled_from([b"", b" ", b"\t "]), st.sampled_from([b"", b"|||", b"||| 7", b"||"]), st.integers(-1, 4),
)  # fmt: skip
def test_scanned_score_fields_equal_naive_ones(parts, before, behind, expected):
    field = before + b"".join(token + blank for token, blank in parts) + behind
    content = field.split(b"|||")[0]
    tokens = naive.tokens(content)
    faults = [fault for fault in map(naive.number_fault, tokens) if fault != "ok"]
    if not faults and (not tokens or expected not in (-1, len(tokens))):
        faults = ["wrong count"]
    result = np.empty(3, np.int64)
    # Text before and after the field is ignored.
    text = b"1 1" + field + b"0 ||| 1"
    scan_scores(array(text), 3, 3 + len(field), expected, result)
    assert FAULTS[result[0]] == (faults or ["ok"])[0]
    assert result[1] == len(tokens)
    assert result[2] == 3 + (len(content.rstrip(b" \t")) if tokens else 0)


@given(
    st.lists(st.sampled_from(GOOD_NUMBERS), min_size=1, max_size=5),
    st.lists(st.integers(0, 5), max_size=4),
)
def test_columns_in_the_requested_order(numbers, requested):
    text = b" " + b"\t".join(numbers) + b" "
    values = np.full((2, len(requested)), -7.0)
    read_columns(array(text), 0, len(text), np.array(requested, np.int64), values, 1)
    assert (values[0] == -7).all()
    expected = [float(numbers[column]) if column < len(numbers) else -7.0 for column in requested]
    np.testing.assert_allclose(values[1], expected, rtol=1e-12)


@given(st.lists(st.tuples(st.floats(0, 3e38), st.floats(0, 1)), max_size=20))
def test_natural_logarithms_with_a_floor(rows):
    values = np.array(rows).reshape(-1, 2)
    result = log_scores("t", values, np.arange(len(rows)))
    assert (result.dtype, result.shape) == (np.float32, values.shape)
    # Like in Moses, from the score in single precision.
    expected = [[max(math.log(x), -100.0) if x else -100.0 for x in row] for row in values.astype(np.float32).tolist()]
    np.testing.assert_allclose(result, np.array(expected).reshape(-1, 2), rtol=2e-6, atol=1e-7)


def test_the_smallest_scores_are_minus_100():
    assert log_scores("t", np.array([[0.0, 1e-44, 1e-60, 1.0]]), np.zeros(1, np.int64)).tolist() == [[-100.0] * 3 + [0]]


@pytest.mark.parametrize(("score", "message"), [(-1e-9, "is negative"), (math.inf, "is infinite"), (3.5e38, "is inf")])
def test_scores_without_a_logarithm_are_reported_by_line(score, message):
    values = np.full((3, 2), 0.5)
    values[1, 1] = values[2, 0] = score
    with pytest.raises(DataError, match=f"^t:42: a score {message}"):
        log_scores("t", values, np.array([7, 41, 99]))
