"""Lines of a table as columns, and back without loss.

`read_rows` and `write_rows` convert lines to columns and back.  Lines are rebuilt from their columns if they have the
canonical form, which Moses' `consolidate` writes:

    source ||| target ||| score score[ ||| alignment[ ||| counts[ ||| sparse[ ||| properties[ ||| extra]]]]]

one space around `|||`, none before it if a field after the scores is empty (`||| |||`), numbers as C++ prints them
(%g, six digits).  A line of another form is stored as a whole in addition to its columns; if only the numbers are
written differently, or blanks follow the last field, only these are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.lines.fields import find_separator, line_offsets_of, valid_utf8, write_bars
from moses_compat.lines.numbers import MAX_WIDTH, OK, check_number, read_number, write_number
from phrasetool.kernels.bytes import CR, LF, SPACE, copy_bytes, is_blank, same_bytes, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, FloatArray, Int64Array

# The fields of a line; all text after the seventh `|||` is one more field.
SOURCE, TARGET, SCORES, ALIGNMENT, COUNTS, SPARSE, PROPERTIES, EXTRA = range(8)
FIELDS = 8
# The texts of a row: its fields, the blanks and the carriage return after them, and the unchanged line.
TAIL, RAW = FIELDS, FIELDS + 1
TEXTS = FIELDS + 2
COUNT_COLUMNS = 3

BoolArray = npt.NDArray[np.bool_]


@exact_kernel
def _split(text: ByteArray, offsets: Int64Array, starts: Int64Array, ends: Int64Array, canonical: BoolArray) -> None:
    """Find each field's content, without surrounding blanks (-1: no such field), and whether a line is canonical.

    starts, ends: shape (N, FIELDS + 1), the last for the tail.
    """
    for line in range(len(canonical)):
        begin, end = offsets[line], offsets[line + 1]
        same = text[end - 1] == LF
        if same:
            end -= 1
        stop = end
        if stop > begin and text[stop - 1] == CR:
            stop -= 1
        position = begin
        i = begin
        for field in range(FIELDS):
            starts[line, field] = ends[line, field] = -1
            if i < 0:
                continue
            bar = find_separator(text, i, stop) if field < FIELDS - 1 else -1
            first, last = i, bar if bar >= 0 else stop
            first = skip_blanks(text, first, last)
            while last > first and is_blank(text[last - 1]):
                last -= 1
            starts[line, field], ends[line, field] = first, last
            # The position of this field in a line of canonical form.
            if field > 0:
                same = same and text[position] == SPACE and position + 1 == i - 3
                position += 4
            if field in (TARGET, SCORES) or (field > SCORES and last > first):
                same = same and position < end and text[position] == SPACE
                position += 1
            if last > first:
                same = same and first == position
                position = last
            i = bar + 3 if bar >= 0 else -1
        canonical[line] = same and starts[line, SCORES] >= 0
        starts[line, TAIL] = ends[line, TAIL] = -1
        if canonical[line] and position < end:
            starts[line, TAIL], ends[line, TAIL] = position, end


@exact_kernel
def _read_numbers(
    text: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    single: bool,
    values: DoubleArray,
    number_counts: Int64Array,
    canonical: BoolArray,
) -> None:
    """Read the numbers of a field: up to the width of `values`.

    number_counts[i] is their number, or -1 if there are too many or one is not a number; canonical[i] is whether they
    are written with one space between them and as `write_number` writes them (single: as float32).
    """
    out = np.empty(MAX_WIDTH + 1, np.uint8)
    width = values.shape[1]
    for line in range(len(starts)):
        i, end = starts[line], ends[line]
        count = 0
        same = True
        while 0 <= i < end and count >= 0:
            first = i
            i = token_end(text, i, end)
            if count == width or check_number(text, first, i) != OK:
                count = -1
                break
            value = read_number(text, first, i)
            if single:
                value = np.float64(np.float32(value))
            values[line, count] = value
            count += 1
            size = write_number(out, 0, value)
            same = same and size == i - first and same_bytes(out, 0, text, first, size)
            gap = i
            i = skip_blanks(text, i, end)
            same = same and (i == end or (i == gap + 1 and text[gap] == SPACE))
        number_counts[line] = count
        canonical[line] = same and count >= 0


@borrowing_kernel
def _write_numbers(values: npt.NDArray[np.floating], there: BoolArray, row: int, out: ByteArray, place: int) -> int:
    """Write a row's numbers separated by spaces; return the position after them, or -1 if one follows a missing one."""
    missing = False
    begin = place
    for column in range(values.shape[1]):
        value = np.float64(values[row, column])
        if not there[row, column] or value != value:
            missing = True
        elif missing:
            return -1
        else:
            if place > begin:
                out[place] = SPACE
                place += 1
            place = write_number(out, place, value)
    return place


class Rows(NamedTuple):
    """N lines of a table as columns.

    Attributes:
        text: uint8, the bytes of all texts.
        starts, ends: int64, shape (N, TEXTS), offsets of the texts; -1 for a missing text.  A score or counts field
            that is given by its numbers has no text.
        scores: float32, shape (N, S).
        score_there: bool, shape (N, S), False for a missing score.
        counts: float64, shape (N, COUNT_COLUMNS): counts of the target, of the source, and of the pair.
        count_there: bool, shape (N, COUNT_COLUMNS), False for a missing count.
    """

    text: ByteArray
    starts: Int64Array
    ends: Int64Array
    scores: FloatArray
    score_there: BoolArray
    counts: DoubleArray
    count_there: BoolArray


@exact_kernel
def _write_lines(rows: Rows, out: ByteArray) -> tuple[int, int]:
    """Write the rows as lines; return the number of bytes and the first incomplete row, or -1."""
    text, starts, ends, scores, score_there, counts, count_there = rows
    position = 0
    for row in range(len(starts)):
        if starts[row, RAW] >= 0:
            position = copy_bytes(text, starts[row, RAW], ends[row, RAW], out, position)
            continue
        if starts[row, SOURCE] < 0 or starts[row, TARGET] < 0:
            return position, row
        last = SCORES
        for field in range(ALIGNMENT, FIELDS):
            if starts[row, field] >= 0 or (field == COUNTS and count_there[row, 0]):
                last = field
        for field in range(last + 1):
            if field > 0:
                out[position] = SPACE
                position = write_bars(out, position + 1)
            content = position
            if field > 0:
                out[position] = SPACE
                content += 1
            if starts[row, field] >= 0:
                after = copy_bytes(text, starts[row, field], ends[row, field], out, content)
            elif field == SCORES:
                after = _write_numbers(scores, score_there, row, out, content)
                if after <= content:
                    return position, row
            elif field == COUNTS:
                after = _write_numbers(counts, count_there, row, out, content)
                if after < 0:
                    return position, row
            else:
                after = content
            position = after if after > content or field <= SCORES else position
        if starts[row, TAIL] >= 0:
            position = copy_bytes(text, starts[row, TAIL], ends[row, TAIL], out, position)
        out[position] = LF
        position += 1
    return position, -1


def read_rows(text: ByteArray, scores: int, line_offsets: Int64Array | None = None) -> Rows:
    """Convert whole lines of a table to columns (the last may lack its line feed).

    If a line is not UTF-8, its texts have a question mark for each invalid byte, and RAW has its original bytes.

    Args:
        text: uint8, shape (B,).
        scores: number of score columns; a line with a different number of scores has its score field as text.
        line_offsets: int64, shape (N + 1,), the start of each line and the end of the last, if known.
    """
    offsets = line_offsets_of(text) if line_offsets is None else line_offsets
    lines = len(offsets) - 1
    starts, ends = np.full((lines, TEXTS), -1, np.int64), np.full((lines, TEXTS), -1, np.int64)
    canonical = np.empty(lines, np.bool_)
    fields = np.empty((2, lines, FIELDS + 1), np.int64)
    _split(text, offsets, fields[0], fields[1], canonical)
    starts[:, : FIELDS + 1], ends[:, : FIELDS + 1] = fields
    values, present, in_text = [], [], []
    for field, width, single in ((SCORES, scores, True), (COUNTS, COUNT_COLUMNS, False)):
        numbers = np.zeros((lines, width))
        number_counts, plain = np.empty(lines, np.int64), np.empty(lines, np.bool_)
        first, last = np.ascontiguousarray(starts[:, field]), np.ascontiguousarray(ends[:, field])
        _read_numbers(text, first, last, single, numbers, number_counts, plain)
        if field == SCORES:
            number_counts[number_counts != width] = 0
        values.append(numbers)
        present.append(np.arange(width) < number_counts[:, None])
        in_text.append(~plain | (number_counts == 0))
    for field, is_text in zip((SCORES, COUNTS), in_text, strict=True):
        starts[~is_text, field] = ends[~is_text, field] = -1
    shown = valid_utf8(text)
    if shown is not text:
        changed = np.flatnonzero(shown != text)
        canonical[np.searchsorted(offsets, changed, "right") - 1] = False
        # The unchanged lines follow the valid text.
        text = np.concatenate([shown, text])
        offsets = offsets + len(shown)
    starts[~canonical, RAW] = offsets[:-1][~canonical]
    ends[~canonical, RAW] = offsets[1:][~canonical]
    return Rows(text, starts, ends, values[0].astype(np.float32), present[0], values[1], present[1])


def write_rows(rows: Rows) -> tuple[ByteArray, int]:
    """Convert rows to lines; the inverse of `read_rows`, byte for byte.

    Returns:
        uint8; and the first row that lacks a source, a target or a score, or -1.  The lines end before that row.
    """
    numbers = rows.scores.shape[1] + COUNT_COLUMNS
    size = int((rows.ends - rows.starts).sum()) + len(rows.starts) * (5 * FIELDS + 1 + numbers * (MAX_WIDTH + 1))
    out = np.empty(size, np.uint8)
    written, incomplete = _write_lines(rows, out)
    return out[:written], incomplete
