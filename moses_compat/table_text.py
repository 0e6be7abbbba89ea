"""Moses phrase-table text -> `EntryBlock`, in kernels that never touch a Python object.

A line is `source ||| target ||| scores [||| alignment [||| counts [||| sparse [||| properties]]]]`; any number of
fields from three up is accepted.  As Moses' text loader does, fields are split at the three bytes `|||` wherever
they stand, and tokens at runs of spaces and tabs.  Nothing is decoded, re-encoded or normalised: an `EntryBlock` keeps
the bytes of its lines, and whatever is written later is made of those bytes.

A source group is a run of consecutive lines with the same source tokens.  A line without any `|||` belongs to the
group around it, so that a stray line never cuts a group in two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from phrasetool.jit import exact_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int32Array, Int64Array, Phrases
from phrasetool.vocabulary import Vocabulary, is_label, look_up_next

_LF = np.uint8(10)
_CR = np.uint8(13)
_SPACE = np.uint8(32)
_TAB = np.uint8(9)
_PIPE = np.uint8(ord("|"))
_ZERO = np.uint8(ord("0"))
_NINE = np.uint8(ord("9"))
_PLUS = np.uint8(ord("+"))
_MINUS = np.uint8(ord("-"))
_POINT = np.uint8(ord("."))
_LOWER = np.uint8(32)
_A = np.uint8(ord("a"))
_F = np.uint8(ord("f"))
_E = np.uint8(ord("e"))
_I = np.uint8(ord("i"))
_N = np.uint8(ord("n"))

OK, FEW_FIELDS, NOT_A_NUMBER, WRONG_COUNT, IS_NAN = range(5)


@exact_kernel
def _is_blank(c: int) -> bool:
    return c == _SPACE or c == _TAB


@exact_kernel
def _separator(text: ByteArray, start: int, end: int) -> int:
    """The position of the first `|||` in text[start:end], or -1."""
    i = start
    last = end - 2
    while i < last:
        if text[i] == _PIPE and text[i + 1] == _PIPE and text[i + 2] == _PIPE:
            return i
        i += 1
    return -1


@exact_kernel
def _same_tokens(text: ByteArray, a: int, a_end: int, b: int, b_end: int) -> bool:
    """Whether text[a:a_end] and text[b:b_end] hold the same tokens."""
    while True:
        while a < a_end and _is_blank(text[a]):
            a += 1
        while b < b_end and _is_blank(text[b]):
            b += 1
        if a == a_end or b == b_end:
            return a == a_end and b == b_end
        while a < a_end and b < b_end and not _is_blank(text[a]) and text[a] == text[b]:
            a += 1
            b += 1
        if (a < a_end and not _is_blank(text[a])) or (b < b_end and not _is_blank(text[b])):
            return False


@exact_kernel
def last_group_start(text: ByteArray) -> int:
    """Where the last source group of `text` begins (its last line may be incomplete), or 0 if there is but one."""
    line_end = len(text)
    group = -1
    group_end = -1
    while line_end > 0:
        start = line_end - 1 if text[line_end - 1] == _LF else line_end
        while start > 0 and text[start - 1] != _LF:
            start -= 1
        field_end = _separator(text, start, line_end)
        if field_end >= 0:
            if group >= 0 and not _same_tokens(text, start, field_end, group, group_end):
                return group
            group = start
            group_end = field_end
        line_end = start
    return 0


@exact_kernel
def _letters(text: ByteArray, start: int, end: int, first: int, second: int, third: int) -> bool:
    """Whether a token is these three letters, in either case."""
    return (
        end - start == 3
        and text[start] | _LOWER == first
        and text[start + 1] | _LOWER == second
        and text[start + 2] | _LOWER == third
    )


@exact_kernel
def _number(text: ByteArray, start: int, end: int) -> int:
    """OK, NOT_A_NUMBER or IS_NAN for the token text[start:end]; `inf` is a number, as it is for Moses."""
    i = start
    if i < end and (text[i] == _PLUS or text[i] == _MINUS):
        i += 1
    digits = 0
    letters = i
    while i < end and _ZERO <= text[i] <= _NINE:
        digits += 1
        i += 1
    if i < end and text[i] == _POINT:
        i += 1
        while i < end and _ZERO <= text[i] <= _NINE:
            digits += 1
            i += 1
    if digits == 0:
        if _letters(text, letters, end, _N, _A, _N):
            return IS_NAN
        return OK if _letters(text, letters, end, _I, _N, _F) else NOT_A_NUMBER
    if i < end and text[i] | _LOWER == _E:
        i += 1
        if i < end and (text[i] == _PLUS or text[i] == _MINUS):
            i += 1
        if i == end:
            return NOT_A_NUMBER
        while i < end and _ZERO <= text[i] <= _NINE:
            i += 1
    return OK if i == end else NOT_A_NUMBER


@exact_kernel
def _value(text: ByteArray, start: int, end: int) -> float:
    """The value of a token that `_number` accepted."""
    i = start
    sign = 1.0
    if text[i] == _PLUS or text[i] == _MINUS:
        sign = -1.0 if text[i] == _MINUS else 1.0
        i += 1
    if text[i] | _LOWER == _I:
        return sign * np.inf
    mantissa = 0.0
    exponent = 0
    # Eighteen digits are more than a double holds; the rest only count for the exponent.
    while i < end and _ZERO <= text[i] <= _NINE:
        if mantissa < 1e18:
            mantissa = mantissa * 10.0 + (text[i] - _ZERO)
        else:
            exponent += 1
        i += 1
    if i < end and text[i] == _POINT:
        i += 1
        while i < end and _ZERO <= text[i] <= _NINE:
            if mantissa < 1e18:
                mantissa = mantissa * 10.0 + (text[i] - _ZERO)
                exponent -= 1
            i += 1
    if i < end:
        i += 1
        power_sign = 1
        if text[i] == _PLUS or text[i] == _MINUS:
            power_sign = -1 if text[i] == _MINUS else 1
            i += 1
        power = 0
        while i < end:
            power = power * 10 + np.int64(text[i] - _ZERO)
            i += 1
        exponent += power_sign * min(power, 10000)
    # In two steps, so that neither a long mantissa nor an extreme exponent overflows on the way.
    half = exponent // 2
    return sign * mantissa * 10.0**half * 10.0 ** (exponent - half) if mantissa > 0 else sign * 0.0


# Plain numbers are recognised by an automaton, one table look-up a byte; whatever it does not accept is looked at
# again by `_number`.  States: 0 between scores, 1 sign, 2 digits, 3 point, 4 digits and point, 5 e, 6 sign of the
# exponent, 7 digits of the exponent, 8 anything else.  Byte classes: 0 blank, 1 digit, 2 sign, 3 point, 4 e, 5 other.
_CLASSES = np.full(256, 5, np.uint8)
_CLASSES[[32, 9]] = 0
_CLASSES[ord("0") : ord("9") + 1] = 1
_CLASSES[[ord("+"), ord("-")]] = 2
_CLASSES[ord(".")] = 3
_CLASSES[[ord("e"), ord("E")]] = 4
_NEXT = np.array(
    [
        [0, 2, 1, 3, 8, 8],
        [0, 2, 8, 3, 8, 8],
        [0, 2, 8, 4, 5, 8],
        [0, 4, 8, 8, 8, 8],
        [0, 4, 8, 8, 5, 8],
        [0, 7, 6, 8, 8, 8],
        [0, 7, 8, 8, 8, 8],
        [0, 7, 8, 8, 8, 8],
        [0, 8, 8, 8, 8, 8],
    ],
    np.uint8,
)
_ACCEPTED = np.array([True, False, True, False, True, False, False, True, False])


@exact_kernel
def _scan_scores(text: ByteArray, start: int, end: int, expected: int, result: Int64Array) -> None:
    """Check the score field at `start`; it ends at `|||` or `end`.

    result = (fault, number of scores, end of the last score).
    """
    count = 0
    fault = OK
    last = start
    first = start
    state = np.uint8(0)
    i = start
    while i <= end:
        c = text[i] if i < end else _SPACE
        closes = c == _PIPE and i + 2 < end and text[i + 1] == _PIPE and text[i + 2] == _PIPE
        following = np.uint8(0) if closes else _NEXT[state, _CLASSES[c]]
        if state == 0:
            first = i
        elif following == 0:
            if not _ACCEPTED[state] and fault == OK:
                fault = _number(text, first, i)
            count += 1
            last = i
        state = following
        if closes:
            break
        i += 1
    if fault == OK and (count == 0 or (expected >= 0 and count != expected)):
        fault = WRONG_COUNT
    result[0] = fault
    result[1] = count
    result[2] = last


@exact_kernel
def _read_columns(
    text: ByteArray, start: int, end: int, wanted: Int64Array, values: npt.NDArray[np.float64], line: int
) -> None:
    """values[line, w] = score number wanted[w] of the good score field text[start:end]."""
    count = 0
    i = start
    while i < end:
        if _is_blank(text[i]):
            i += 1
            continue
        first = i
        while i < end and not _is_blank(text[i]):
            i += 1
        for w in range(len(wanted)):
            if wanted[w] == count:
                values[line, w] = _value(text, first, i)
        count += 1


@exact_kernel
def _scan(
    text: ByteArray,
    expected: int,
    wanted: Int64Array,
    line_offsets: Int64Array,
    source_ends: Int64Array,
    target_ends: Int64Array,
    score_ends: Int64Array,
    faults: npt.NDArray[np.uint8],
    found: Int64Array,
    columns: npt.NDArray[np.float64],
    group_offsets: Int64Array,
) -> int:
    """Fill the arrays behind line_offsets, one row a line; return the number of groups."""
    result = np.zeros(3, np.int64)
    groups = 0
    group_start, group_end = np.int64(-1), np.int64(-1)
    for line in range(len(line_offsets) - 1):
        start = line_offsets[line]
        content_end = line_offsets[line + 1]
        if content_end > start and text[content_end - 1] == _LF:
            content_end -= 1
        if content_end > start and text[content_end - 1] == _CR:
            content_end -= 1
        first = _separator(text, start, content_end)
        second = _separator(text, first + 3, content_end) if first >= 0 else -1
        source_ends[line] = first
        target_ends[line] = second
        if second < 0:
            faults[line] = FEW_FIELDS
            found[line] = 1 if first < 0 else 2
            score_ends[line] = content_end
        else:
            _scan_scores(text, second + 3, content_end, expected, result)
            faults[line] = result[0]
            found[line] = result[1]
            score_ends[line] = result[2]
            if len(wanted) > 0 and result[0] == OK:
                _read_columns(text, second + 3, result[2], wanted, columns, line)
        keyed = first >= 0
        if line == 0 or (keyed and (group_start < 0 or not _same_tokens(text, start, first, group_start, group_end))):
            # Lines without a key at the very top join the first group that has one.
            if line == 0 or group_start >= 0:
                group_offsets[groups] = line
                groups += 1
        if keyed:
            group_start, group_end = start, first
    group_offsets[groups] = len(line_offsets) - 1
    return groups


@exact_kernel
def _tokenise(
    text: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    words: ByteArray,
    word_offsets: Int64Array,
    slots: Int32Array,
    offsets: Int64Array,
    ids: Int32Array,
    buffer: ByteArray,
) -> None:
    """Word ids of the fields text[starts[i]:ends[i]]; labels such as `[X]` are left out."""
    count = 0
    offsets[0] = 0
    for field_ in range(len(starts)):
        i = starts[field_]
        end = ends[field_]
        while i < end:
            if _is_blank(text[i]):
                i += 1
                continue
            word, i = look_up_next(text, i, end, words, word_offsets, slots, buffer)
            if word >= 0:
                ids[count] = word
                count += 1
        offsets[field_ + 1] = count


@exact_kernel
def _count_words(text: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array) -> None:
    for field_ in range(len(starts)):
        count = 0
        i = starts[field_]
        while i < ends[field_]:
            first = i
            while i < ends[field_] and not _is_blank(text[i]):
                i += 1
            if i > first and not is_label(text, first, i):
                count += 1
            i += 1
        counts[field_] = count


@exact_kernel
def _hash_pairs(text: ByteArray, starts: Int64Array, ends: Int64Array, hashes: npt.NDArray[np.uint32]) -> None:
    """FNV-1a over source and target as written."""
    for line in range(len(hashes)):
        h = np.uint32(2166136261)
        for i in range(starts[line], ends[line]):
            h = np.uint32((h ^ np.uint32(text[i])) * np.uint32(16777619))
        hashes[line] = h


@exact_kernel
def _find_pairs(text: ByteArray, line_offsets: Int64Array, found: Int64Array, counts: npt.NDArray[np.float64]) -> None:
    """found[line] = source start and end, target start and end; -1 where there is no `|||`."""
    for line in range(len(counts)):
        start, end = line_offsets[line], line_offsets[line + 1]
        while end > start and (text[end - 1] == _LF or text[end - 1] == _CR):
            end -= 1
        found[line] = -1
        counts[line] = 1.0
        first = _separator(text, start, end)
        if first < 0:
            continue
        second = _separator(text, first + 3, end)
        found[line, 0] = start
        found[line, 1] = first
        found[line, 2] = first + 3
        found[line, 3] = second if second >= 0 else end
        if second < 0:
            continue
        third = _separator(text, second + 3, end)
        if third < 0:
            # A single number is a count; several are the scores of a table without counts.
            i = second + 3
        else:
            fourth = _separator(text, third + 3, end)
            if fourth < 0:
                continue
            i = fourth + 3
            fifth = _separator(text, i, end)
            end = fifth if fifth >= 0 else end
        tokens = 0
        value = 1.0
        while i < end:
            if _is_blank(text[i]):
                i += 1
                continue
            begin = i
            while i < end and not _is_blank(text[i]):
                i += 1
            tokens += 1
            if _number(text, begin, i) == OK:
                value = _value(text, begin, i)
        if tokens == 1 or third >= 0:
            counts[line] = value


def find_pair_fields(text: ByteArray) -> tuple[Int64Array, npt.NDArray[np.float64]]:
    """Find the pairs of a block of lines; see `pairs` for the form of a line.

    Returns:
        int64, shape (N, 4): source start and end, target start and end (-1 for a line without `|||`); and the count of
        each pair, float64, shape (N,).
    """
    offsets = _line_offsets(text)
    found = np.empty((len(offsets) - 1, 4), np.int64)
    counts = np.empty(len(found), np.float64)
    _find_pairs(text, offsets, found, counts)
    return found, counts


def _line_offsets(text: ByteArray) -> Int64Array:
    """Where each line begins, and the end of the text; int64, shape (N + 1,)."""
    ends = np.flatnonzero(text == _LF) + 1
    if len(text) and (not len(ends) or ends[-1] != len(text)):
        ends = np.append(ends, len(text))
    return np.concatenate([np.zeros(1, np.int64), ends])


def tokenise(text: ByteArray, starts: Int64Array, ends: Int64Array, vocabulary: Vocabulary) -> Phrases:
    """The phrases at text[starts[i]:ends[i]] as word ids.

    Args:
        text: uint8, shape (B,).
        starts, ends: int64, shape (N,).
        vocabulary: of their language.
    """
    offsets = np.zeros(len(starts) + 1, np.int64)
    widths = ends - starts
    ids = np.empty(int((widths // 2 + 1).sum()), np.int32)
    buffer = np.empty(max(int(widths.max(initial=0)), 1), np.uint8)
    _tokenise(text, starts, ends, *vocabulary.tables, offsets, ids, buffer)
    return Phrases(offsets, ids[: offsets[-1]].copy())


@dataclass(frozen=True)
class Fault:
    """A line that cannot be read as a table entry.

    Attributes:
        entry: 0-based number of the line in its table.
        message: what was found and what was expected.
    """

    entry: int
    message: str


@dataclass(frozen=True)
class LineScan:
    """Where the fields of a block of lines are; all arrays int64 of shape (N,) unless stated.

    Attributes:
        line_offsets: shape (N + 1,).
        source_ends, target_ends: positions of the first two `|||`, -1 where missing.
        score_ends: the byte after the last score.
        faults: uint8, one of OK, FEW_FIELDS, NOT_A_NUMBER, WRONG_COUNT, IS_NAN.
        found: the number of scores (of fields, for FEW_FIELDS).
        columns: float64, shape (N, C), the score columns asked for.
        group_offsets: shape (G + 1,).
    """

    line_offsets: Int64Array
    source_ends: Int64Array
    target_ends: Int64Array
    score_ends: Int64Array
    faults: npt.NDArray[np.uint8]
    found: Int64Array
    columns: npt.NDArray[np.float64]
    group_offsets: Int64Array


def scan_lines(text: ByteArray, scores: int = -1, columns: Sequence[int] = ()) -> LineScan:
    """Find lines, fields, scores and source groups.

    Args:
        text: uint8, whole lines; the last may lack its line feed.
        scores: how many scores a line must have; -1 for any number.
        columns: 0-based score columns whose values are wanted.
    """
    offsets = _line_offsets(text)
    lines = len(offsets) - 1
    positions = [np.empty(lines, np.int64) for _ in range(4)]
    scan = LineScan(
        offsets,
        positions[0],
        positions[1],
        positions[2],
        np.zeros(lines, np.uint8),
        positions[3],
        np.zeros((lines, len(columns)), np.float64),
        np.zeros(lines + 1, np.int64),
    )
    groups = _scan(
        text, scores, np.asarray(columns, np.int64), scan.line_offsets, scan.source_ends, scan.target_ends,
        scan.score_ends, scan.faults, scan.found, scan.columns, scan.group_offsets,
    )  # fmt: skip
    return LineScan(**{**scan.__dict__, "group_offsets": scan.group_offsets[: groups + 1]})


def count_scores(text: ByteArray) -> int:
    """The number of scores of the first good line, or -1 if there is none; what the rest of a table must agree with."""
    scan = scan_lines(text)
    good = np.flatnonzero(scan.faults == OK)
    return int(scan.found[good[0]]) if len(good) else -1


@dataclass(frozen=True)
class TableParser:
    """Turns the text of a block into an `EntryBlock` and the faults found in it.

    Args:
        source, target: the vocabularies; without them phrases have no words (a table that is only copied or counted).
        scores: how many scores every entry has.
        columns: 0-based score columns to read.
        hashes: whether to fingerprint every pair.
    """

    source: Vocabulary | None = None
    target: Vocabulary | None = None
    scores: int = -1
    columns: Sequence[int] = field(default_factory=tuple)
    hashes: bool = False

    def __call__(self, index: int, first_entry: int, text: ByteArray) -> tuple[EntryBlock, list[Fault]]:
        """Parse the block `text`, number `index`, whose first line is number `first_entry` of its table."""
        scan = scan_lines(text, self.scores, self.columns)
        starts = scan.line_offsets[:-1]
        source_ends = np.maximum(scan.source_ends, starts)
        target_starts = np.minimum(source_ends + 3, scan.line_offsets[1:])
        target_ends = np.maximum(scan.target_ends, target_starts)
        heads = self._group_heads(scan)
        source_lengths = np.empty(len(heads), np.int64)
        _count_words(text, starts[heads], source_ends[heads], source_lengths)
        block = EntryBlock(
            index,
            first_entry,
            text,
            scan.line_offsets,
            scan.score_ends,
            scan.group_offsets,
            source_lengths,
            _phrases(text, starts[heads], source_ends[heads], self.source),
            _phrases(text, target_starts, target_ends, self.target),
            scan.faults != OK,
            scan.columns,
        )
        if self.hashes:
            block.pair_hashes = np.empty(len(starts), np.uint32)
            _hash_pairs(text, starts, target_ends, block.pair_hashes)
        return block, self._faults(scan, first_entry)

    @staticmethod
    def _group_heads(scan: LineScan) -> Int64Array:
        """For each group the first line that has a source field."""
        heads = scan.group_offsets[:-1].copy()
        if len(heads) and scan.source_ends[0] < 0:
            keyed = np.flatnonzero(scan.source_ends[: scan.group_offsets[1]] >= 0)
            heads[0] = keyed[0] if len(keyed) else 0
        return heads

    def _faults(self, scan: LineScan, first_entry: int) -> list[Fault]:
        messages = {
            FEW_FIELDS: "expected at least 3 fields separated by |||, found {}",
            NOT_A_NUMBER: "a score is not a number",
            WRONG_COUNT: f"expected {max(self.scores, 1)} scores as on the lines before, found {{}}",
            IS_NAN: "a score is NaN, which Moses cannot load",
        }
        return [
            Fault(first_entry + int(i), messages[int(scan.faults[i])].format(scan.found[i]))
            for i in np.flatnonzero(scan.faults)
        ]


def _phrases(text: ByteArray, starts: Int64Array, ends: Int64Array, vocabulary: Vocabulary | None) -> Phrases:
    if vocabulary is None:
        return Phrases(np.zeros(len(starts) + 1, np.int64), np.zeros(0, np.int32))
    return tokenise(text, starts, ends, vocabulary)
