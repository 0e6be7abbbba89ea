import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.lines.numbers import MAX_WIDTH, format_numbers


def check(values):
    values = np.asarray(values, np.float64)
    assert format_numbers(values).split() == [b"%g" % value for value in values.tolist()]


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
    assert len(format_numbers(np.array([-1.23456789e-308]))) == MAX_WIDTH
    assert format_numbers(np.zeros(0)) == b""
