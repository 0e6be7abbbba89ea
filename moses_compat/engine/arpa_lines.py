"""The lines of an ARPA file: where the words of n-grams are, and their numbers; of all, or of those wanted alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.lines.scores import OK, check_number, read_number
from phrasetool.kernels.bytes import CR, LF, is_blank, skip_blanks, token_end
from phrasetool.kernels.hashing import fnv_bytes
from phrasetool.kernels.interning import find_hashed_bytes
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int32Array, Int64Array

_BACKSLASH = np.uint8(92)
# What may be wrong with a line, beside OK.
SHORT, LONG, PROBABILITY, BACKOFF, POSITIVE, HIGHEST = range(1, 7)


class Known(NamedTuple):
    """The 1-grams of a model.

    Attributes:
        text, offsets, slots: of `Symbols.tables`.
        wanted: bool, for each of them; an n-gram with another is passed over.  Empty if all n-grams are wanted.
    """

    text: ByteArray
    offsets: Int64Array
    slots: Int32Array
    wanted: npt.NDArray[np.bool_]


ALL = Known(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_))


@borrowing_kernel
def _has_unwanted(text: ByteArray, i: int, end: int, order: int, known: Known) -> bool:
    """Whether one of the next `order` tokens of text[i:end] is a word that is not wanted."""
    for _ in range(order):
        first = skip_blanks(text, i, end)
        i = token_end(text, first, end)
        if i == first:
            break
        word = known.slots[
            find_hashed_bytes(text, first, i, fnv_bytes(text, first, i), known.text, known.offsets, known.slots)
        ]
        if word >= 0 and not known.wanted[word]:
            return True
    return False


@exact_kernel
def scan_section(
    text: ByteArray,
    start: int,
    order: int,
    highest: bool,
    known: Known,
    starts: Int64Array,
    ends: Int64Array,
    scores: FloatArray,
    backoffs: FloatArray,
) -> tuple[int, int, int, int]:
    """Scan the lines of a section up to one that begins with a backslash, or the end; kenlm skips empty lines.

    Where the words of n-gram i begin and end goes to starts[i] and ends[i], its numbers to scores[i] and backoffs[i].

    Returns:
        How many n-grams were read, how many there are (no more than fit), the byte behind the last, and OK or what is
        wrong there.
    """
    count = seen = 0
    line = start
    while line < len(text) and seen < len(starts):
        end = line
        while end < len(text) and text[end] != LF:
            end += 1
        following = min(end + 1, len(text))
        if end > line and text[end - 1] == CR:
            end -= 1
        while end > line and is_blank(text[end - 1]):
            end -= 1
        i = skip_blanks(text, line, end)
        if i == end:
            line = following
            continue
        if text[i] == _BACKSLASH:
            break
        seen += 1
        if len(known.wanted) > 0 and _has_unwanted(text, token_end(text, i, end), end, order, known):
            line = following
            continue
        begin = i
        i = token_end(text, i, end)
        if check_number(text, begin, i) != OK:
            return count, seen, line, PROBABILITY
        score = read_number(text, begin, i)
        if score > 0:
            return count, seen, line, POSITIVE
        for k in range(order):
            i = skip_blanks(text, i, end)
            if i == end:
                return count, seen, line, SHORT
            if k == 0:
                starts[count] = i
            i = token_end(text, i, end)
        ends[count] = i
        scores[count] = score
        backoffs[count] = 0.0
        if i < end:
            begin = skip_blanks(text, i, end)
            i = token_end(text, begin, end)
            if i < end:
                return count, seen, line, LONG
            if check_number(text, begin, i) != OK:
                return count, seen, line, BACKOFF
            backoffs[count] = read_number(text, begin, i)
            if highest and backoffs[count] != 0.0:
                return count, seen, line, HIGHEST
        count += 1
        line = following
    return count, seen, line, OK
