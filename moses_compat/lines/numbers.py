"""Numbers in lines: alignment points, integers, decimals and `%g`; the score field and logarithms of scores.

Decimals have up to six places.  `%g`, as C++ streams write numbers by default, has six significant digits, rounded
exactly as the C library rounds them.  Tables of Moses' training begin with four scores: p(f|e) lex(f|e) p(e|f)
lex(e|f).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from phrasetool.errors import DataError
from phrasetool.kernels.bytes import MINUS, NINE, PIPE, PLUS, POINT, SPACE, ZERO, is_blank, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, DoubleArray, FloatArray, Int64Array
from phrasetool.smt.decoder.features import LOWEST_SCORE

# The largest position that is accepted, so that a point fits into 32 bits.
MAX_POSITION = 32767
_POINT = re.compile(rb"[0-9]+-[0-9]+")

# The longest text of a number: -1.23457e-308.
MAX_WIDTH = 14

_DIGITS = 6
MILLION = 10**6
_E = np.uint8(ord("e"))
_WORDS = np.frombuffer(b"infnan", np.uint8)

# 10**k as the sum of two doubles, for k from -_LOWEST to 350; the second is the rounding error of the first.  Powers
# above 10**200 are scaled by 2**-_SCALE, because the largest are beyond the range of doubles.
_LOWEST = 310
_SCALED_FROM = 200
_SCALE = 512
# The largest exact power of ten; beyond its inverse no double lies halfway between two numbers of six digits.
_EXACT = 22
# Integers up to this one are exact.
_EXACT_INTEGER = 2.0**53

_LOWER = np.uint8(32)
_A = np.uint8(ord("a"))
_F = np.uint8(ord("f"))
_I = np.uint8(ord("i"))
_N = np.uint8(ord("n"))
_NINE = np.uint8(9)

OK, FEW_FIELDS, NOT_A_NUMBER, WRONG_COUNT, IS_NAN = range(5)
# Number of scores that Moses' training writes, and the columns of p(f|e) and p(e|f).
TRAINED = 4
INVERSE_COLUMN, DIRECT_COLUMN = 0, 2
MOSES_SCORES = ("phi(f|e)", "lex(f|e)", "phi(e|f)", "lex(e|f)")


def is_point(token: bytes) -> bool:
    """Return whether a token is a valid alignment point within the limit."""
    positions = token.split(b"-") if _POINT.fullmatch(token) else []
    return bool(positions) and all(int(position) <= MAX_POSITION for position in positions)


def point_error(token: bytes) -> str:
    """Return why a token is rejected as an alignment point: it is malformed, or a position is beyond the limit."""
    shown = token[:40].decode("utf-8", "replace")
    if _POINT.fullmatch(token):
        longest = f"{MAX_POSITION:,}, the largest supported: sentences have at most {MAX_POSITION + 1:,} words"
        return f"the point {shown} has a position beyond {longest}"
    return f"expected alignment points like 0-0 1-2, found {shown!r}"


@borrowing_kernel
def read_position(text: ByteArray, i: int, end: int) -> tuple[int, int]:
    """Return the number at text[i:end], -1 if there is none, and the offset of its end."""
    value = -1
    while i < end and ZERO <= text[i] <= NINE:
        value = min(max(value, 0) * 10 + int(text[i]) - int(ZERO), MAX_POSITION + 1)
        i += 1
    return value, i


def _powers() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    high, low = [], []
    for k in range(-_LOWEST, 351):
        # A quotient of integers, which Python rounds correctly.
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
    """Return the rounding error of the product of two doubles (Dekker 1971)."""
    a_high = _SPLITTER * a
    a_high -= a_high - a
    a_low = a - a_high
    b_high = _SPLITTER * b
    b_high -= b_high - b
    b_low = b - b_high
    return ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low


@exact_kernel
def _scaled_digits(value: float, power: int) -> int:
    """Return value * 10**power, which is below 10**15, correctly rounded to an integer, halves to even."""
    if -_EXACT <= power < 0:
        # Division, because negative powers are not exact, and an exact half must be distinguished from almost a half.
        divisor = _POWER_HIGH[_LOWEST - power]
        product = value / divisor
        rest = ((value - product * divisor) - _product_error(product, divisor)) / divisor
    else:
        high, low = _POWER_HIGH[power + _LOWEST], _POWER_LOW[power + _LOWEST]
        if power > _SCALED_FROM:
            value *= 2.0**_SCALE
        elif power < -_SCALED_FROM:
            # Prevents overflow in the splitting of the product.
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
    """Write a number as `%g` to out[place:], at most MAX_WIDTH bytes; return the position after it."""
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
    """Write numbers as `write_number` does, each after a space; return the position after them."""
    for k in range(len(values)):
        out[place] = SPACE
        place = write_number(out, place + 1, values[k])
    return place


@inner_kernel
def write_digits(out: ByteArray, place: int, digits: int, count: int) -> None:
    """Write the last `count` decimal digits of a non-negative integer."""
    for k in range(count - 1, -1, -1):
        out[place + k] = ZERO + np.uint8(digits % 10)
        digits //= 10


@inner_kernel
def write_integer(out: ByteArray, place: int, value: int) -> int:
    """Write a non-negative integer; return the position after it."""
    count = 1
    rest = value // 10
    while rest > 0:
        rest //= 10
        count += 1
    write_digits(out, place, value, count)
    return place + count


@inner_kernel
def write_millionths(out: ByteArray, place: int, millionths: int) -> int:
    """Write a non-negative number of millionths as a decimal without trailing zeros; return the position after it."""
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


@borrowing_kernel
def _letters(text: ByteArray, start: int, end: int, first: int, second: int, third: int) -> bool:
    """Return whether a token consists of these three letters, in upper or lower case."""
    return (
        end - start == 3
        and text[start] | _LOWER == first
        and text[start + 1] | _LOWER == second
        and text[start + 2] | _LOWER == third
    )


@borrowing_kernel
def check_number(text: ByteArray, start: int, end: int) -> int:
    """Return OK, NOT_A_NUMBER or IS_NAN for the token text[start:end]; `inf` is a number, as in Moses."""
    i = start
    if i < end and (text[i] == PLUS or text[i] == MINUS):
        i += 1
    digits = 0
    letters = i
    while i < end and ZERO <= text[i] <= NINE:
        digits += 1
        i += 1
    if i < end and text[i] == POINT:
        i += 1
        while i < end and ZERO <= text[i] <= NINE:
            digits += 1
            i += 1
    if digits == 0:
        if _letters(text, letters, end, _N, _A, _N):
            return IS_NAN
        return OK if _letters(text, letters, end, _I, _N, _F) else NOT_A_NUMBER
    if i < end and text[i] | _LOWER == _E:
        i += 1
        if i < end and (text[i] == PLUS or text[i] == MINUS):
            i += 1
        if i == end:
            return NOT_A_NUMBER
        while i < end and ZERO <= text[i] <= NINE:
            i += 1
    return OK if i == end else NOT_A_NUMBER


@borrowing_kernel
def read_number(text: ByteArray, start: int, end: int) -> float:
    """Return the value of a token that `check_number` accepted."""
    i = start
    sign = 1.0
    if text[i] == PLUS or text[i] == MINUS:
        sign = -1.0 if text[i] == MINUS else 1.0
        i += 1
    if text[i] | _LOWER == _I:
        return sign * np.inf
    mantissa = 0.0
    exponent = 0
    # Eighteen digits exceed the precision of a double; further digits only change the exponent.
    while i < end and ZERO <= text[i] <= NINE:
        if mantissa < 1e18:
            mantissa = mantissa * 10.0 + (text[i] - ZERO)
        else:
            exponent += 1
        i += 1
    if i < end and text[i] == POINT:
        i += 1
        while i < end and ZERO <= text[i] <= NINE:
            if mantissa < 1e18:
                mantissa = mantissa * 10.0 + (text[i] - ZERO)
                exponent -= 1
            i += 1
    if i < end:
        i += 1
        power_sign = 1
        if text[i] == PLUS or text[i] == MINUS:
            power_sign = -1 if text[i] == MINUS else 1
            i += 1
        power = 0
        while i < end:
            power = power * 10 + np.int64(text[i] - ZERO)
            i += 1
        exponent += power_sign * min(power, 10000)
    # Integers up to 2^53 and these powers of ten are exact, so a single operation rounds correctly.
    if mantissa <= _EXACT_INTEGER and -_EXACT <= exponent <= _EXACT:
        return sign * (mantissa / 10.0**-exponent if exponent < 0 else mantissa * 10.0**exponent)
    # In two steps, so that neither a long mantissa nor an extreme exponent overflows in between.
    half = exponent // 2
    return sign * mantissa * 10.0**half * 10.0 ** (exponent - half) if mantissa > 0 else sign * 0.0


@inner_kernel
def _closes(text: ByteArray, i: int, end: int) -> bool:
    """Return whether the score field of text[:end] ends at `i`: at the end of the text or at a separator."""
    return i >= end or (text[i] == PIPE and i + 2 < end and text[i + 1] == PIPE and text[i + 2] == PIPE)


@inner_kernel
def _plain_number(text: ByteArray, i: int, end: int) -> int:
    """Return the end of an unsigned number at the start of text[i:end], with a digit before its exponent; or -1."""
    first = i
    while i < end and text[i] - ZERO <= _NINE:
        i += 1
    digits = i - first
    if i < end and text[i] == POINT:
        i += 1
        first = i
        while i < end and text[i] - ZERO <= _NINE:
            i += 1
        digits += i - first
    if i < end and text[i] | _LOWER == _E:
        i += 1
        if i < end and (text[i] == MINUS or text[i] == PLUS):
            i += 1
        first = i
        while i < end and text[i] - ZERO <= _NINE:
            i += 1
        if i == first:
            return -1
    return i if digits > 0 else -1


@borrowing_kernel
def scan_scores(text: ByteArray, start: int, end: int, expected: int, result: Int64Array) -> None:
    """Check the score field at `start`, which ends at `|||` or `end`.

    Stores (fault, number of scores, end of the last score) in `result`.
    """
    count = 0
    fault = OK
    last = start
    i = start
    while not _closes(text, i, end):
        if is_blank(text[i]):
            i += 1
            continue
        first = i
        i = _plain_number(text, first, end)
        if i < 0 or not (_closes(text, i, end) or is_blank(text[i])):
            i = first
            while not (_closes(text, i, end) or is_blank(text[i])):
                i += 1
            if fault == OK:
                fault = check_number(text, first, i)
        count += 1
        last = i
    if fault == OK and (count == 0 or (expected >= 0 and count != expected)):
        fault = WRONG_COUNT
    result[0] = fault
    result[1] = count
    result[2] = last


@borrowing_kernel
def read_columns(
    text: ByteArray, start: int, end: int, columns: Int64Array, values: npt.NDArray[np.float64], line: int
) -> None:
    """Store score number columns[w] of the valid score field text[start:end] in values[line, w]."""
    count = 0
    i = skip_blanks(text, start, end)
    while i < end:
        first = i
        i = token_end(text, i, end)
        for w in range(len(columns)):
            if columns[w] == count:
                values[line, w] = read_number(text, first, i)
        count += 1
        i = skip_blanks(text, i, end)


def require_trained_scores(name: str, scores: int, line: int, purpose: str | None = None) -> None:
    """Check that a table has the scores of Moses' training.

    Args:
        name: name of the table in messages.
        scores: number of scores per entry; -1 if the table has no entry.
        line: line number of an entry, from 1.
        purpose: the feature that needs the scores, for the message.

    Raises:
        DataError: the entries have too few scores.
    """
    if not 0 <= scores < TRAINED:
        return
    expected = f"expected the {TRAINED} of Moses' training"
    if purpose:
        expected = f"for {purpose} they need the {TRAINED} that Moses' training writes"
    raise DataError(name, f"the entries have {scores} scores{';' if purpose else ','} {expected}", line)


def log_scores(name: str, values: DoubleArray, entries: Int64Array) -> FloatArray:
    """Return the scores of N entries as a model uses them, by Moses' TransformScore and FloorScore.

    Args:
        name: name of the table in messages.
        values: float64, shape (N, C), as in the table.
        entries: int64, shape (N,), 0-based numbers of the entries in the table.

    Returns:
        float32, shape (N, C), natural logarithms, at least -100.

    Raises:
        DataError: a score is negative or infinite.
    """
    for wrong, message in (
        (values < 0, "a score is negative; Moses takes its logarithm"),
        (values > np.finfo(np.float32).max, "a score is infinite"),
    ):
        if wrong.any():
            raise DataError(name, message, int(entries[np.flatnonzero(wrong.any(axis=1))[0]]) + 1)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values.astype(np.float32)), np.float32(LOWEST_SCORE))
