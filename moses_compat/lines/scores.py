"""The score field of a line: the number of scores, their values, and their logarithms.

Tables of Moses' training begin with four scores: p(f|e) lex(f|e) p(e|f) lex(e|f).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.errors import DataError
from phrasetool.kernels.bytes import MINUS, NINE, PIPE, PLUS, POINT, ZERO, is_blank, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, inner_kernel
from phrasetool.phrases import ByteArray, DoubleArray, FloatArray, Int64Array
from phrasetool.smt.decoder.features import LOWEST_SCORE

_LOWER = np.uint8(32)
_A = np.uint8(ord("a"))
_F = np.uint8(ord("f"))
_E = np.uint8(ord("e"))
_I = np.uint8(ord("i"))
_N = np.uint8(ord("n"))
_NINE = np.uint8(9)

OK, FEW_FIELDS, NOT_A_NUMBER, WRONG_COUNT, IS_NAN = range(5)
# Scores that Moses' training writes, and the columns of p(f|e) and p(e|f) among them.
TRAINED = 4
INVERSE_COLUMN, DIRECT_COLUMN = 0, 2


@borrowing_kernel
def _letters(text: ByteArray, start: int, end: int, first: int, second: int, third: int) -> bool:
    """Whether a token is these three letters, in either case."""
    return (
        end - start == 3
        and text[start] | _LOWER == first
        and text[start + 1] | _LOWER == second
        and text[start + 2] | _LOWER == third
    )


@borrowing_kernel
def check_number(text: ByteArray, start: int, end: int) -> int:
    """OK, NOT_A_NUMBER or IS_NAN for the token text[start:end]; `inf` is a number, as it is for Moses."""
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
    """The value of a token that `check_number` accepted."""
    i = start
    sign = 1.0
    if text[i] == PLUS or text[i] == MINUS:
        sign = -1.0 if text[i] == MINUS else 1.0
        i += 1
    if text[i] | _LOWER == _I:
        return sign * np.inf
    mantissa = 0.0
    exponent = 0
    # Eighteen digits are more than a double holds; the rest only count for the exponent.
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
    # In two steps, so that neither a long mantissa nor an extreme exponent overflows on the way.
    half = exponent // 2
    return sign * mantissa * 10.0**half * 10.0 ** (exponent - half) if mantissa > 0 else sign * 0.0


@inner_kernel
def _closes(text: ByteArray, i: int, end: int) -> bool:
    """Whether the score field text[:end] is over at `i`: by its end, or a separator."""
    return i >= end or (text[i] == PIPE and i + 2 < end and text[i + 1] == PIPE and text[i + 2] == PIPE)


@inner_kernel
def _plain_number(text: ByteArray, i: int, end: int) -> int:
    """The byte after a number without sign at the beginning of text[i:end], with a digit before its exponent; or -1."""
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
    """Check the score field at `start`; it ends at `|||` or `end`.

    result = (fault, number of scores, end of the last score).
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
    text: ByteArray, start: int, end: int, wanted: Int64Array, values: npt.NDArray[np.float64], line: int
) -> None:
    """values[line, w] = score number wanted[w] of the good score field text[start:end]."""
    count = 0
    i = skip_blanks(text, start, end)
    while i < end:
        first = i
        i = token_end(text, i, end)
        for w in range(len(wanted)):
            if wanted[w] == count:
                values[line, w] = read_number(text, first, i)
        count += 1
        i = skip_blanks(text, i, end)


def require_trained_scores(name: str, scores: int, line: int, purpose: str | None = None) -> None:
    """Check that a table has the scores of Moses' training.

    Args:
        name: the table, as messages call it.
        scores: of its entries; -1 if the table has no entry.
        line: line number of an entry, from 1.
        purpose: what needs the scores, for the message.

    Raises:
        DataError: there are too few.
    """
    if not 0 <= scores < TRAINED:
        return
    expected = f"expected the {TRAINED} of Moses' training"
    if purpose:
        expected = f"for {purpose} they need the {TRAINED} that Moses' training writes"
    raise DataError(name, f"the entries have {scores} scores{';' if purpose else ','} {expected}", line)


def log_scores(name: str, values: DoubleArray, entries: Int64Array) -> FloatArray:
    """The scores of N entries as a model sees them, by Moses' TransformScore and FloorScore.

    Args:
        name: the table, as messages call it.
        values: float64, shape (N, C), as written.
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
