"""The fifth field of a table: how often the target, the source and the pair were extracted, `c(t) c(s) c(s,t)`."""

from __future__ import annotations

import numpy as np

from moses_compat.lines.scores import OK, check_number, read_number
from moses_compat.lines.separators import find_separator
from phrasetool.kernels.bytes import CR, LF, is_blank
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int64Array

OF_TARGET, OF_SOURCE, OF_PAIR = range(3)


@borrowing_kernel
def read_count_field(text: ByteArray, start: int, end: int, counts: FloatArray, line: int) -> None:
    """counts[line] = the numbers at text[start:end] up to a `|||`; what is no number is left as it is."""
    bar = find_separator(text, start, end)
    stop = bar if bar >= 0 else end
    i = start
    column = 0
    while i < stop and column < counts.shape[1]:
        if is_blank(text[i]) or text[i] == LF or text[i] == CR:
            i += 1
            continue
        first = i
        while i < stop and not (is_blank(text[i]) or text[i] == LF or text[i] == CR):
            i += 1
        if check_number(text, first, i) == OK:
            counts[line, column] = read_number(text, first, i)
        column += 1


@exact_kernel
def _read_counts(text: ByteArray, starts: Int64Array, ends: Int64Array, counts: FloatArray) -> None:
    """Pass over the alignment, whatever it is, and read the counts."""
    for line in range(len(starts)):
        bar = find_separator(text, starts[line], ends[line])
        if bar >= 0:
            bar = find_separator(text, bar + 3, ends[line])
            if bar >= 0:
                read_count_field(text, bar + 3, ends[line], counts, line)


def read_counts(text: ByteArray, starts: Int64Array, ends: Int64Array) -> FloatArray:
    """The counts of N entries, float32, shape (N, 3); NaN where the table does not say, or says no number.

    Args:
        text: uint8.
        starts: int64, shape (N,), where their scores end.
        ends: int64, shape (N,), where their lines end.
    """
    counts = np.full((len(starts), 3), np.nan, np.float32)
    _read_counts(text, np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64), counts)
    return counts
