"""Fields after the last one of a line: ` ||| cfe cf ce` and ` ||| -ln p`, as Moses' filter-pt adds them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moses_compat.lines.numbers import MILLION, write_integer, write_millionths
from moses_compat.lines.separators import content_end, write_bars
from phrasetool.kernels.bytes import SPACE
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array

# ` |||`, and a space, 19 digits and a point for each number.
_SEPARATOR_WIDTH = 4
_NUMBER_WIDTH = 21


@exact_kernel
def _append(
    text: ByteArray,
    line_offsets: Int64Array,
    keep: npt.NDArray[np.bool_],
    faulty: npt.NDArray[np.bool_],
    counts: Int64Array,
    millionths: Int64Array,
    out: ByteArray,
) -> int:
    """Copy the kept lines with counts[line, :] and millionths[line, :] millionths appended; return the size."""
    place = 0
    for line in range(len(keep)):
        if not keep[line]:
            continue
        start, end = line_offsets[line], line_offsets[line + 1]
        content = end if faulty[line] else content_end(text, start, end)
        out[place : place + content - start] = text[start:content]
        place += content - start
        if not faulty[line]:
            if counts.shape[1] > 0:
                out[place] = SPACE
                place = write_bars(out, place + 1)
                for c in range(counts.shape[1]):
                    out[place] = SPACE
                    place = write_integer(out, place + 1, counts[line, c])
            for c in range(millionths.shape[1]):
                out[place] = SPACE
                place = write_bars(out, place + 1)
                out[place] = SPACE
                place = write_millionths(out, place + 1, millionths[line, c])
        out[place : place + end - content] = text[content:end]
        place += end - content
    return place


def lines_with_fields(
    block: EntryBlock, keep: npt.NDArray[np.bool_], counts: Int64Array, values: npt.NDArray[np.float64]
) -> ByteArray:
    """The kept lines with more fields before their line ends; faulty lines as they were.

    Args:
        block: N entries.
        keep: bool, shape (N,).
        counts: int64, shape (N, C), not negative: one field, ` ||| c c c`; none if C is 0.
        values: float64, shape (N, V), in [0, 10^12): a field each, ` ||| v`, with up to six decimals and no trailing
            zeros.
    """
    millionths = np.floor(values * MILLION + 0.5).astype(np.int64)
    width = 2 * _SEPARATOR_WIDTH + _NUMBER_WIDTH * (counts.shape[1] + values.shape[1])
    out = np.empty(len(block.text) + width * len(block), np.uint8)
    size = _append(block.text, block.line_offsets, keep, block.faulty, np.ascontiguousarray(counts), millionths, out)
    return out[:size]
