"""Counts in the fifth field of a table: extractions of the target, the source and the pair, `c(t) c(s) c(s,t)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.lines.fields import find_separator, is_separator
from moses_compat.lines.numbers import OK, TRAINED, check_number, read_number
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, PIPE, ZERO, is_blank, skip_blanks, token_end
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, Int64Array, Mask

OF_TARGET, OF_SOURCE, OF_PAIR = range(3)
# A larger count is invalid: no corpus has that many phrases, and sums of larger counts would not be exact.
LARGEST_COUNT = 1e11

_PIPES = np.uint64(int(PIPE) * 0x0101010101010101)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_FIRST_BYTE = np.uint64(0x80)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_1, _8, _16, _24, _40, _48, _56 = (np.uint64(k) for k in (1, 8, 16, 24, 40, 48, 56))
_NINE = np.uint8(9)
# Digits of an integer that a double holds exactly.
_EXACT_DIGITS = 15
# Separators before the counts field: from the beginning of a line, and from the end of its scores.
_BARS_OF_LINE, _BARS_AFTER_SCORES = 4, 2
# A probability has six significant digits, so the relative error of its product with an integer is below this.
_ROUNDING = 1e-5


@inner_kernel
def is_joint_count(target: float, source: float, joint: float) -> bool:
    """Return whether `joint` is a possible joint count: positive, and at most the count of either side.

    A count of a side is ignored if it is NaN or negative.
    """
    least = joint * (1 - _ROUNDING)
    return joint > 0 and not (0 <= target < least or 0 <= source < least)


@inner_kernel
def _ends_token(text: ByteArray, i: int, end: int) -> bool:
    return i >= end or is_blank(text[i]) or text[i] == LF or text[i] == CR or is_separator(text, i, end)


@inner_kernel
def _read_field(text: ByteArray, start: int, end: int, counts: DoubleArray, line: int) -> None:
    i = start
    column = 0
    in_field = True
    while in_field and column < counts.shape[1]:
        while i < end and (is_blank(text[i]) or text[i] == LF or text[i] == CR):
            i += 1
        if i >= end or is_separator(text, i, end):
            in_field = False
        else:
            first = i
            value = np.int64(0)
            # Almost all counts are short integers.
            while i < end and text[i] - ZERO <= _NINE:
                value = value * 10 + (text[i] - ZERO)
                i += 1
            if i > first and i - first <= _EXACT_DIGITS and _ends_token(text, i, end):
                counts[line, column] = value
            else:
                i = _read_other_number(text, first, end, counts, line, column)
            column += 1


@borrowing_kernel
def _read_other_number(text: ByteArray, start: int, end: int, counts: DoubleArray, line: int, column: int) -> int:
    """Store the token at `start` in counts[line, column] if it is a number; return the offset of its end."""
    i = start
    while not _ends_token(text, i, end):
        i += 1
    if check_number(text, start, i) == OK:
        counts[line, column] = read_number(text, start, i)
    return i


class EntryCounts(NamedTuple):
    """The counts of the N entries of a block.

    Attributes:
        values: float64, shape (N, 3): c(t), c(s) and c(s,t); NaN where a count is missing or invalid.  A c(s,t) of 0,
            or above a side's count, is invalid: an entry is extracted at least once, and at most as often as its sides.
        derived: bool, shape (N,): the entry has two counts and four scores or more, so c(s,t) is phi(f|e) * c(t).
    """

    values: DoubleArray
    derived: Mask


@borrowing_kernel
def _after_separators_slowly(text: ByteArray, start: int, end: int, count: int) -> int:
    """Do the same as `_after_separators`, one byte at a time."""
    i = start
    while count > 0:
        bar = find_separator(text, i, end)
        if bar < 0:
            return -1
        i = bar + 3
        count -= 1
    return i


@inner_kernel
def _pipes(eight: np.uint64) -> np.uint64:
    """Return the highest bit of each byte that is `|`."""
    difference = eight ^ _PIPES
    return ~(((difference & _LOW_BITS) + _LOW_BITS) | difference | _LOW_BITS)


@inner_kernel
def _after_separators(text: ByteArray, eights: npt.NDArray[np.uint64], start: int, end: int, count: int) -> int:
    """Return the offset after `count` separators `|||` of text[start:end], or -1 if it has fewer.

    Reads eight bytes at a time.  `_after_separators_slowly` handles runs of four or more bars, and two separators that
    begin in the same eight bytes.
    """
    k = start >> 3
    left = count
    bars, odd = np.uint64(0), np.uint64(0)
    last = min((end + 7) >> 3, len(eights) - 1)
    if k < last:
        here = _pipes(eights[k]) & (_ALL_BITS << np.uint64(8 * (start & 7)))
        while left > 0 and k < last:
            # Without branches: the positions of separators cannot be predicted.
            after = _pipes(eights[k + 1])
            bars = here & (here >> _8 | after << _56) & (here >> _16 | after << _48)
            odd |= bars & ((here >> _24 | after << _40) | (bars - _1))
            left -= bars != 0
            here = after
            k += 1
    if odd != 0 or (left > 0 and k >= len(eights) - 1):
        offset: int = _after_separators_slowly(text, start, end, count)
        return offset
    if left > 0:
        return -1
    i: int = 8 * (k - 1)
    while bars & _FIRST_BYTE == 0:
        bars >>= _8
        i += 1
    return i + 3 if i + 3 <= end else -1


@borrowing_kernel
def _read_all_counts(
    text: ByteArray,
    eights: npt.NDArray[np.uint64],
    starts: Int64Array,
    ends: Int64Array,
    bars: int,
    counts: DoubleArray,
) -> None:
    """Read the counts after `bars` separators of each text[starts[line]:ends[line]].

    `eights` holds the text as integers of eight bytes, or is empty.
    """
    for line in range(len(starts)):
        if bars == _BARS_OF_LINE:
            i = _after_separators(text, eights, starts[line], ends[line], bars)
        else:
            i = _after_separators_slowly(text, starts[line], ends[line], bars)
        if i >= 0:
            _read_field(text, i, ends[line], counts, line)
            if not is_joint_count(counts[line, OF_TARGET], counts[line, OF_SOURCE], counts[line, OF_PAIR]):
                counts[line, OF_PAIR] = np.nan


@inner_kernel
def _count_tokens_of_field(text: ByteArray, start: int, end: int) -> int:
    """Return the number of tokens in text[start:end]."""
    tokens = 0
    i = start
    while i < end:
        if _ends_token(text, i, end):
            i += 1
            continue
        tokens += 1
        while not _ends_token(text, i, end):
            i += 1
    return tokens


@exact_kernel
def _derive_joint_counts(
    text: ByteArray, line_offsets: Int64Array, lines: Int64Array, counts: DoubleArray, derived: Mask
) -> None:
    """Where a counts field holds two numbers, c(t) and c(s), derive c(s,t) from the first score, phi(f|e)."""
    bars = np.empty(5, np.int64)
    for line in lines:
        end = line_offsets[line + 1]
        i = line_offsets[line]
        for k in range(5):
            bars[k] = find_separator(text, i, end) if i >= 0 else -1
            i = bars[k] + 3 if bars[k] >= 0 else -1
        if bars[3] < 0:
            continue
        stop = bars[4] if bars[4] >= 0 else end
        tokens = _count_tokens_of_field(text, bars[3] + 3, stop)
        # With fewer scores, the first need not be phi(f|e): it is phi(e|f) if Moses scored only one direction.
        if tokens != 2 or _count_tokens_of_field(text, bars[1] + 3, bars[2]) < TRAINED:
            continue
        first = skip_blanks(text, bars[1] + 3, bars[2])
        last = token_end(text, first, bars[2])
        joint = np.nan
        if check_number(text, first, last) == OK:
            phi = read_number(text, first, last)
            # A score above 1 is not a probability.
            if phi <= 1.0:
                joint = phi * counts[line, OF_TARGET]
        if 0 < joint <= LARGEST_COUNT and is_joint_count(counts[line, OF_TARGET], counts[line, OF_SOURCE], joint):
            whole = np.rint(joint)
            counts[line, OF_PAIR] = whole if abs(joint - whole) <= _ROUNDING * joint else joint
            derived[line] = True


def block_counts(block: EntryBlock) -> EntryCounts:
    """Return the counts of all entries of a block, parsed with or without fields; malformed lines have none."""
    ends = block.line_offsets[1:]
    starts, bars = block.score_ends, _BARS_AFTER_SCORES
    if len(starts) != len(block):
        starts, bars = block.line_offsets[:-1], _BARS_OF_LINE
    counts = _counts_behind(block.text, starts, ends, bars, block.line_offsets, ~block.malformed)
    if block.malformed.any():
        counts.values[block.malformed] = np.nan
    return counts


def line_counts(text: ByteArray, line_offsets: Int64Array) -> EntryCounts:
    """Return the counts of N lines of a phrase table.

    Args:
        text: uint8, shape (B,).
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
    """
    good = np.ones(len(line_offsets) - 1, np.bool_)
    return _counts_behind(text, line_offsets[:-1], line_offsets[1:], _BARS_OF_LINE, line_offsets, good)


def _counts_behind(
    text: ByteArray, starts: Int64Array, ends: Int64Array, bars: int, line_offsets: Int64Array, good: Mask
) -> EntryCounts:
    """Return the counts after `bars` separators of each text[starts[line]:ends[line]], derived for good lines."""
    values = np.full((len(starts), 3), np.nan)
    derived = np.zeros(len(starts), np.bool_)
    # The fast scan reads eight bytes at a time, which needs an aligned text.
    whole = len(text) // 8 * 8 if text.ctypes.data % 8 == 0 else 0
    _read_all_counts(text, text[:whole].view(np.uint64), starts, ends, bars, values)
    if not (values.min(initial=0) >= 0 and values.max(initial=0) <= LARGEST_COUNT):
        values[~((values >= 0) & (values <= LARGEST_COUNT))] = np.nan
        known = np.isnan(values[:, OF_PAIR]) & ~np.isnan(values[:, [OF_TARGET, OF_SOURCE]]).any(axis=1) & good
        _derive_joint_counts(text, line_offsets, np.flatnonzero(known), values, derived)
    return EntryCounts(values, derived)


@exact_kernel
def _count_tokens(text: ByteArray, line_offsets: Int64Array, lines: Int64Array, token_counts: Int64Array) -> None:
    """Store the number of tokens in the fifth field of line lines[k] in token_counts[k]."""
    for k in range(len(lines)):
        end = line_offsets[lines[k] + 1]
        i = _after_separators_slowly(text, line_offsets[lines[k]], end, _BARS_OF_LINE)
        token_counts[k] = 0
        while 0 <= i < end and not is_separator(text, i, end):
            if _ends_token(text, i, end):
                i += 1
                continue
            token_counts[k] += 1
            while not _ends_token(text, i, end):
                i += 1


def count_tokens(text: ByteArray, line_offsets: Int64Array, lines: Int64Array) -> Int64Array:
    """Return the number of tokens in the fifth field of each selected line.

    Args:
        text: uint8, shape (B,).
        line_offsets: int64, shape (N + 1,), start of each line and end of the last one.
        lines: int64, shape (L,).
    """
    token_counts = np.empty(len(lines), np.int64)
    _count_tokens(text, np.ascontiguousarray(line_offsets), np.ascontiguousarray(lines), token_counts)
    return token_counts


def shown_counts(line: bytes) -> str:
    """Return the counts of a line of a phrase table for appending to a message; empty if it has none."""
    fields = line.split(b"|||", 5)
    text = fields[4].strip(b" \t\r\n").decode("utf-8", "replace") if len(fields) > 4 else ""
    return f" (found {text!r})" if text else ""


@dataclass
class CountTally:
    """Numbers of entries with missing and derived joint counts.

    Attributes:
        entries: all entries, without malformed lines.
        missing: entries whose joint count is missing or invalid.
        derived: entries whose joint count was derived from phi(f|e) and c(t).
    """

    entries: int = 0
    missing: int = 0
    derived: int = 0

    @classmethod
    def of(cls, counts: EntryCounts, good: Mask) -> CountTally:
        """Tally the entries of a block.

        Args:
            counts: counts of the block.
            good: bool, shape (N,), the lines that are entries.
        """
        missing = np.isnan(counts.values[:, OF_PAIR]) & good
        return cls(*(int(np.count_nonzero(marks)) for marks in (good, missing, counts.derived)))

    def __iadd__(self, other: CountTally) -> CountTally:
        self.entries, self.missing = self.entries + other.entries, self.missing + other.missing
        self.derived += other.derived
        return self

    def sentences(self, consequence: str) -> Iterator[str]:
        """Yield one sentence each about derived counts and about missing counts.

        Args:
            consequence: clause that states the consequence of missing counts.
        """
        if self.derived:
            yield f"joint counts of {self.derived:,} of {self.entries:,} entries were derived as phi(f|e) * c(t)"
        if self.missing:
            which = f"{self.missing:,} of {self.entries:,} entries have no joint count"
            yield f"{'the table has no joint counts' if self.missing == self.entries else which}: {consequence}"


class CountUse(NamedTuple):
    """The feature that needs the joint counts of a table, for messages.

    Attributes:
        subject: its name, as the subject of a sentence with the verb "needs".
        remedy: the name of an alternative that works without counts, see `PhraseToolError`.
    """

    subject: str
    remedy: str | None = None


def require_joint_counts(name: str, block: EntryBlock, counts: EntryCounts, use: CountUse) -> None:
    """Reject a block with an entry that has no joint count.

    Args:
        name: name of the table, for the message.
        block: its entries; malformed lines need no count.
        counts: counts of the block.
        use: the feature that needs the counts.

    Raises:
        DataError: an entry has no joint count; the message names the first such entry.
    """
    joint = counts.values[:, OF_PAIR]
    # The sum is NaN if any count is, and needs no mask in memory.
    if not np.isnan(joint.sum()):
        return
    missing = np.flatnonzero(np.isnan(joint) & ~block.malformed)
    if len(missing):
        row = int(missing[0])
        raise DataError(name, describe_missing(block, row, use.subject), block.first_entry + row + 1, remedy=use.remedy)


def describe_missing(block: EntryBlock, row: int, subject: str) -> str:
    """Describe why an entry has no joint count.

    Args:
        block: its entries.
        row: the entry.
        subject: the feature that needs the count, as the subject of a sentence with the verb "needs".
    """
    line = block.text[block.line_offsets[row] : block.line_offsets[row + 1]]
    shown = shown_counts(line.tobytes())
    values = np.full((1, 3), np.nan)
    bar = _after_separators_slowly(line, 0, len(line), _BARS_OF_LINE)
    if bar >= 0:
        _read_field(line, bar, len(line), values, 0)
    if ((values >= 0) & (values <= LARGEST_COUNT)).all():
        reason = (
            f"the entry has an impossible joint count{shown}: it must be positive and at most the count of each side"
        )
    else:
        reason = f"the entry has no joint count{shown}"
    return f"{reason}; {subject} needs c(t) c(s) c(s,t) in the fifth field"
