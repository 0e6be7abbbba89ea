"""Numbers in lines: positions of alignment points are read; integers, decimals and `%g` are written.

Decimals have up to six places.  `%g`, as C++ streams write numbers by default, has six significant digits, rounded
exactly as the C library rounds them.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.bytes import MINUS, NINE, PLUS, POINT, SPACE, ZERO
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray

# The largest position that is read, so that a point fits into 32 bits.
MAX_POSITION = 32767
_POINT = re.compile(rb"[0-9]+-[0-9]+")

# The longest text of a number: -1.23457e-308.
MAX_WIDTH = 14

_DIGITS = 6
MILLION = 10**6
_E = np.uint8(ord("e"))
_WORDS = np.frombuffer(b"infnan", np.uint8)

# 10**k as the sum of two doubles, for k from -_LOWEST to 350; the second is what the first leaves out.  Powers beyond
# the range of doubles are kept scaled, by 2**-_SCALE above 10**200.
_LOWEST = 310
_SCALED_FROM = 200
_SCALE = 512
# The last power of ten that is a double; beyond its inverse no double lies halfway between two numbers of six digits.
_EXACT = 22


def is_point(token: bytes) -> bool:
    """Whether a token is an alignment point that can be read."""
    positions = token.split(b"-") if _POINT.fullmatch(token) else []
    return bool(positions) and all(int(position) <= MAX_POSITION for position in positions)


def point_fault(token: bytes) -> str:
    """Return why a token is no alignment point that can be read: it is none, or a position is beyond the limit."""
    found = token[:40].decode("utf-8", "replace")
    if _POINT.fullmatch(token):
        longest = f"{MAX_POSITION:,}, the largest that is read: sentences have at most {MAX_POSITION + 1:,} words"
        return f"the point {found} has a position beyond {longest}"
    return f"expected alignment points like 0-0 1-2, found {found!r}"


@borrowing_kernel
def read_position(text: ByteArray, i: int, end: int) -> tuple[int, int]:
    """The number at text[i:end], -1 if there is none, and where it ends."""
    value = -1
    while i < end and ZERO <= text[i] <= NINE:
        value = min(max(value, 0) * 10 + int(text[i]) - int(ZERO), MAX_POSITION + 1)
        i += 1
    return value, i


def _powers() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    high, low = [], []
    for k in range(-_LOWEST, 351):
        # As a fraction of integers, whose quotients Python rounds correctly.
        above, below = 10 ** max(k, 0), 10 ** max(-k, 0)
        if k > _SCALED_FROM:
            below <<= _SCALE
        high.append(above / below)
        part, whole = high[-1].as_integer_ratio()
        low.append((above * whole - part * below) / (below * whole))
    return np.array(high), np.array(low)


_POWER_HIGH, _POWER_LOW = _powers()
_SPLITTER = 134217729.0


@exact_kernel
def _product_error(a: float, b: float) -> float:
    """What the product of two doubles loses when it is rounded (Dekker 1971)."""
    a_high = _SPLITTER * a
    a_high -= a_high - a
    a_low = a - a_high
    b_high = _SPLITTER * b
    b_high -= b_high - b
    b_low = b - b_high
    return ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low


@exact_kernel
def _scaled_digits(value: float, power: int) -> int:
    """value * 10**power, which is below 10**15, rounded to an integer as if computed exactly, halves to even."""
    if -_EXACT <= power < 0:
        # Divided, because the negative powers are not exact, and a half must be told from almost a half.
        divisor = _POWER_HIGH[_LOWEST - power]
        product = value / divisor
        rest = ((value - product * divisor) - _product_error(product, divisor)) / divisor
    else:
        high, low = _POWER_HIGH[power + _LOWEST], _POWER_LOW[power + _LOWEST]
        if power > _SCALED_FROM:
            value *= 2.0**_SCALE
        elif power < -_SCALED_FROM:
            # Keeps the splitting of the product from overflowing.
            value, high, low = value * 2.0**-_SCALE, high * 2.0**_SCALE, low * 2.0**_SCALE
        product = value * high
        rest = _product_error(value, high) + value * low
    floor = np.floor(product)
    digits = np.int64(floor)
    # The fraction of the product is exact; so is its distance from a half.
    above = (product - floor - 0.5) + rest
    if above > 0.0 or (above == 0.0 and digits % 2 == 1):
        digits += 1
    elif above < -1.0:
        digits -= 1
    return int(digits)


@borrowing_kernel
def write_number(out: ByteArray, place: int, value: float) -> int:
    """Write `%g` of a number to out[place:]; return the place after it.  At most MAX_WIDTH bytes."""
    if value < 0.0 or (value == 0.0 and 1.0 / value < 0.0):
        out[place] = MINUS
        place += 1
        value = -value
    if value == 0.0:
        out[place] = ZERO
        return place + 1
    if not value < np.inf:
        for k in range(3):
            out[place + k] = _WORDS[k + 3 * (value != value)]
        return place + 3
    exponent = np.int64(np.floor(np.log10(value)))
    digits = _scaled_digits(value, _DIGITS - 1 - exponent)
    # The logarithm may be one off near a power of ten.
    if digits < 10 ** (_DIGITS - 1):
        exponent -= 1
        digits = _scaled_digits(value, _DIGITS - 1 - exponent)
    elif digits > 10**_DIGITS:
        exponent += 1
        digits = _scaled_digits(value, _DIGITS - 1 - exponent)
    if digits == 10**_DIGITS:
        exponent += 1
        digits //= 10
    count = _DIGITS
    while count > 1 and digits % 10 == 0:
        digits //= 10
        count -= 1
    if -5 < exponent < _DIGITS:
        place = _write_fixed(out, place, digits, count, exponent)
    else:
        place = _write_scientific(out, place, digits, count, exponent)
    return place


@borrowing_kernel
def write_numbers(out: ByteArray, place: int, values: npt.NDArray[np.float64]) -> int:
    """Write numbers as `write_number` does, a space before each; return the place after them."""
    for k in range(len(values)):
        out[place] = SPACE
        place = write_number(out, place + 1, values[k])
    return place


@inner_kernel
def write_digits(out: ByteArray, place: int, digits: int, count: int) -> None:
    """Write the last `count` decimal digits of a number from 0."""
    for k in range(count - 1, -1, -1):
        out[place + k] = ZERO + np.uint8(digits % 10)
        digits //= 10


@inner_kernel
def write_integer(out: ByteArray, place: int, value: int) -> int:
    """Write a number from 0; return the place after it."""
    count = 1
    rest = value // 10
    while rest > 0:
        rest //= 10
        count += 1
    write_digits(out, place, value, count)
    return place + count


@inner_kernel
def write_millionths(out: ByteArray, place: int, millionths: int) -> int:
    """Write a number of millionths, from 0, with up to six decimals and no zeros behind; return the place after it."""
    place = write_integer(out, place, millionths // MILLION)
    rest = millionths % MILLION
    if rest == 0:
        return place
    decimals = 6
    while rest % 10 == 0:
        rest //= 10
        decimals -= 1
    out[place] = POINT
    write_digits(out, place + 1, rest, decimals)
    return place + 1 + decimals


@borrowing_kernel
def _write_fixed(out: ByteArray, place: int, digits: int, count: int, exponent: int) -> int:
    if exponent < 0:
        out[place], out[place + 1] = ZERO, POINT
        for k in range(-exponent - 1):
            out[place + 2 + k] = ZERO
        place += 1 - exponent
        write_digits(out, place, digits, count)
        return place + count
    whole = exponent + 1
    if count <= whole:
        write_digits(out, place, digits, count)
        for k in range(count, whole):
            out[place + k] = ZERO
        return place + whole
    write_digits(out, place, digits, count)
    for k in range(count, whole, -1):
        out[place + k] = out[place + k - 1]
    out[place + whole] = POINT
    return place + count + 1


@borrowing_kernel
def _write_scientific(out: ByteArray, place: int, digits: int, count: int, exponent: int) -> int:
    write_digits(out, place, digits, count)
    if count > 1:
        for k in range(count, 1, -1):
            out[place + k] = out[place + k - 1]
        out[place + 1] = POINT
        place += count + 1
    else:
        place += 1
    out[place], out[place + 1] = _E, MINUS if exponent < 0 else PLUS
    exponent = abs(exponent)
    width = 3 if exponent > 99 else 2
    write_digits(out, place + 2, exponent, width)
    return place + 2 + width
