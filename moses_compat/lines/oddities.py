"""Unusual properties of the lines of a table, found in one pass; `loaders` describes how Moses reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_compat.lines.counts import LARGEST_COUNT, is_joint_count
from moses_compat.lines.fields import find_separator, valid_utf8
from moses_compat.lines.numbers import OK, check_number, read_number, read_position
from phrasetool.kernels.bytes import CR, LF, MINUS, PIPE, SPACE, is_blank, same_bytes, skip_blanks, token_end
from phrasetool.kernels.bytes import TAB as TAB_BYTE
from phrasetool.kernels.hashing import FNV_BASIS, fnv
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

# Bits of a line's flags.
(
    BLANK, EMPTY_SOURCE, EMPTY_TARGET, LABEL_AT_END, RULE, BRACKET_INSIDE, NON_TERMINALS, BAD_ALIGNMENT, NO_ALIGNMENT,
    ALIGNMENT_BEYOND, BAD_COUNTS, SPARSE, BAD_SPARSE, PROPERTIES, BAD_PROPERTY, UNKNOWN_PROPERTY, EXTRA_FIELDS,
    CARRIAGE_RETURN, TAB, DOUBLE_SPACE, GAP, TIGHT, POINTS_WITHOUT_TARGET, BEYOND_TOKENS, BEYOND_TARGET, PHRASE_GAP,
    BARS_ONLY, ZERO_BYTE, EMPTY_BRACKETS, TARGET_NON_TERMINAL, BRACKETS,
) = (1 << bit for bit in range(31))  # fmt: skip

# Kinds of counts of an entry: none, only of one or both sides, and of the pair.
COUNT_KINDS = ("none", "sides", "joint")

_JOINT = 2
# The number of factors of a token is counted up to this; Moses supports four, so five stands for too many.
MOST_FACTORS = 5

# The property keys that Moses registers (moses/PP/Factory.cpp); any other key makes it stop.
_KEYS = [
    b"Counts", b"SourceLabels", b"TargetConstituentBoundariesLeft", b"TargetConstituentBoundariesRightAdjacent",
    b"TargetPreferences", b"Tree", b"SpanLength", b"NonTermContext", b"Orientation",
]  # fmt: skip
_KEY_TEXT = np.frombuffer(b"".join(_KEYS), np.uint8)
_KEY_OFFSETS = np.cumsum([0] + [len(key) for key in _KEYS])

_OPEN = np.uint8(ord("["))
_CLOSE = np.uint8(ord("]"))
_BRACE = np.uint8(ord("{"))


@exact_kernel
def _look_at_phrase(
    text: ByteArray, start: int, end: int, line: int, h: int, tokens_by_factors: Int64Array, first_lines: Int64Array
) -> tuple[int, int, int, int, int]:
    """Analyse one side of an entry.

    Returns:
        Flags; number of tokens without the label; a bit for each of the first 63 tokens that is a non-terminal; number
        of non-terminals; the hash of the tokens, continued from h.
    """
    flags = 0
    words = 0
    mask = np.int64(0)
    non_terminals = 0
    i = skip_blanks(text, start, end)
    while i < end:
        first = i
        i = token_end(text, i, end)
        pipes = 0
        inner = 0
        for k in range(first, i):
            h = fnv(h, text[k])
            if text[k] == PIPE:
                pipes += 1
            if text[k] == _OPEN and k > first:
                inner = k
        h = fnv(h, SPACE)
        if pipes == i - first:
            flags |= BARS_ONLY
        bracket = i - first >= 2 and text[first] == _OPEN and text[i - 1] == _CLOSE
        if bracket:
            flags |= BRACKETS | (EMPTY_BRACKETS if i - first == 2 else 0)
        i = skip_blanks(text, i, end)
        if bracket and i == end:
            flags |= LABEL_AT_END
            continue
        if bracket:
            if inner == 0:
                flags |= BRACKET_INSIDE
            non_terminals += 1
            if words < 63:
                mask |= np.int64(1) << words
        else:
            factors = min(pipes + 1, MOST_FACTORS)
            tokens_by_factors[factors] += 1
            if first_lines[factors] < 0:
                first_lines[factors] = line
        words += 1
    return flags, words, mask, non_terminals, h


@exact_kernel
def _look_at_alignment(
    text: ByteArray,
    start: int,
    end: int,
    source_words: int,
    target_words: int,
    source_mask: int,
    target_mask: int,
    labels: int,
) -> int:
    """Return the flags of an alignment field.

    NON_TERMINALS is set if the field does not pair each non-terminal with exactly one of the other side.  Bits 0 and 1
    of `labels` are set if a label follows the words of the source and of the target.
    """
    flags = 0
    source_tokens, target_tokens = source_words + (labels & 1), target_words + (labels >> 1)
    used_source = np.int64(0)
    used_target = np.int64(0)
    i = skip_blanks(text, start, end)
    if i == end:
        flags |= NO_ALIGNMENT
    while i < end:
        source, i = read_position(text, i, end)
        if source < 0 or i == end or text[i] != MINUS:
            return BAD_ALIGNMENT
        target, i = read_position(text, i + 1, end)
        if target < 0 or (i < end and not is_blank(text[i])):
            return BAD_ALIGNMENT
        if target_words == 0:
            flags |= POINTS_WITHOUT_TARGET
        # An entry without a source is useless anyway.
        if source_tokens > 0 and (source >= source_tokens or target >= target_tokens):
            flags |= BEYOND_TOKENS
        if target >= target_tokens:
            flags |= BEYOND_TARGET
        if source >= source_words or target >= target_words:
            flags |= ALIGNMENT_BEYOND
        elif source < 63 and target < 63:
            source_bit, target_bit = np.int64(1) << source, np.int64(1) << target
            is_source, is_target = (source_mask & source_bit) != 0, (target_mask & target_bit) != 0
            if is_source != is_target or (used_source & source_bit) != 0 or (used_target & target_bit) != 0:
                flags |= NON_TERMINALS
            if is_source and is_target:
                used_source |= source_bit
                used_target |= target_bit
        i = skip_blanks(text, i, end)
    if used_source != source_mask or used_target != target_mask:
        flags |= NON_TERMINALS
    return flags


@exact_kernel
def _look_at_counts(text: ByteArray, start: int, end: int) -> tuple[int, int]:
    """Return the flags of a field of counts, and the index of its kind in `COUNT_KINDS`."""
    flags, kind = 0, 0
    count = 0
    target, source = np.nan, np.nan
    i = skip_blanks(text, start, end)
    while i < end:
        first = i
        i = token_end(text, i, end)
        value = read_number(text, first, i) if check_number(text, first, i) == OK else np.nan
        if not 0 <= value <= LARGEST_COUNT:
            value = np.nan
        valid = is_joint_count(target, source, value) if count == _JOINT else not np.isnan(value)
        target, source = source, value
        if not valid:
            flags = BAD_COUNTS
        elif count < _JOINT:
            kind = max(kind, 1)
        elif count == _JOINT:
            kind = 2
        count += 1
        i = skip_blanks(text, i, end)
    return flags, kind


@exact_kernel
def _look_at_sparse(text: ByteArray, start: int, end: int) -> int:
    """Return the flags of a field of alternating names and numbers."""
    flags = 0
    count = 0
    i = skip_blanks(text, start, end)
    while i < end:
        first = i
        i = token_end(text, i, end)
        if count % 2 == 1 and check_number(text, first, i) != OK:
            flags = BAD_SPARSE
        count += 1
        i = skip_blanks(text, i, end)
    if count:
        flags |= SPARSE
        if count % 2 == 1:
            flags |= BAD_SPARSE
    return flags


@exact_kernel
def _is_known_key(text: ByteArray, start: int, end: int) -> bool:
    for key in range(len(_KEY_OFFSETS) - 1):
        first = _KEY_OFFSETS[key]
        size = _KEY_OFFSETS[key + 1] - first
        if size == end - start and same_bytes(text, start, _KEY_TEXT, first, size):
            return True
    return False


@exact_kernel
def _look_at_properties(text: ByteArray, start: int, end: int) -> int:
    """Return the flags of a field of `{{Key value}}`."""
    i = skip_blanks(text, start, end)
    if i == end:
        return 0
    flags = PROPERTIES
    while i < end:
        if i + 1 >= end or text[i] != _BRACE or text[i + 1] != _BRACE:
            return flags | BAD_PROPERTY
        i = skip_blanks(text, i + 2, end)
        first = i
        while i < end and text[i] != SPACE and text[i] != _BRACE:
            i += 1
        if i == end or text[i] == _BRACE:
            return flags | BAD_PROPERTY
        if not _is_known_key(text, first, i):
            flags |= UNKNOWN_PROPERTY
        # Moses only searches for the next `{{`.
        while i < end and not (text[i] == _BRACE and i + 1 < end and text[i + 1] == _BRACE):
            i += 1
    return flags


@exact_kernel
def _look_at_spacing(text: ByteArray, start: int, end: int) -> int:
    """Return the flags for blanks and zero bytes of a line."""
    flags = 0
    for i in range(start, end):
        if text[i] == 0:
            flags |= ZERO_BYTE
        elif text[i] == TAB_BYTE:
            flags |= TAB
        elif text[i] == SPACE and i + 1 < end and text[i + 1] == SPACE:
            # An empty field written like any other consists of two spaces.
            empty = i > start and text[i - 1] == PIPE and i + 2 < end and text[i + 2] == PIPE
            if not empty:
                flags |= DOUBLE_SPACE
    return flags


@exact_kernel
def _has_gap(text: ByteArray, start: int, end: int) -> bool:
    """Return whether two tokens of a field are separated by anything but one space."""
    i = skip_blanks(text, start, end)
    while end > i and is_blank(text[end - 1]):
        end -= 1
    while i < end:
        i = token_end(text, i, end)
        if i < end and (text[i] == TAB_BYTE or is_blank(text[i + 1])):
            return True
        i += 1
    return False


@exact_kernel
def _find_bars(text: ByteArray, start: int, end: int, bars: Int64Array) -> tuple[int, int]:
    """Store the positions of the first `|||` in `bars`, then `end`; return the number of `|||`, and TIGHT or 0."""
    flags = 0
    count = 0
    i = find_separator(text, start, end)
    while i >= 0:
        if count < len(bars):
            bars[count] = i
        count += 1
        if (i > start and text[i - 1] != SPACE) or (i + 3 < end and text[i + 3] != SPACE):
            flags = TIGHT
        i = find_separator(text, i + 3, end)
    if count < len(bars):
        bars[count] = end
    return count, flags


@exact_kernel
def _look_behind_scores(
    text: ByteArray,
    bars: Int64Array,
    count: int,
    source_words: int,
    target_words: int,
    source_mask: int,
    target_mask: int,
    labels: int,
) -> tuple[int, int]:
    """Return the flags of the fields from the alignment on, and the index of the kind of counts in `COUNT_KINDS`.

    `bars` holds the positions of the first `|||`, then the end.  For `labels`, see `_look_at_alignment`.
    """
    kind = 0
    if count < 3:
        return NO_ALIGNMENT | (NON_TERMINALS if source_mask or target_mask else 0), kind
    flags = _look_at_alignment(text, bars[2] + 3, bars[3], source_words, target_words, source_mask, target_mask, labels)
    if count >= 4:
        bad, kind = _look_at_counts(text, bars[3] + 3, bars[4])
        flags |= bad
    if count >= 5:
        flags |= _look_at_sparse(text, bars[4] + 3, bars[5])
    if count >= 6:
        flags |= _look_at_properties(text, bars[5] + 3, bars[6])
    if count >= 7:
        flags |= EXTRA_FIELDS
    return flags, kind


class LineProperties(NamedTuple):
    """Properties of N lines.

    Attributes:
        flags: int64, shape (N,), the bits defined above.
        fields: int64, shape (N,), number of fields of each line.
        counts: int64, shape (N,), index in `COUNT_KINDS` for each line.
        source_hashes, pair_hashes: int64, shape (N,), hashes of the tokens, regardless of the blanks between them; 0
            for lines with fewer than three fields.
        tokens_by_factors: int64, shape (2, 6), numbers of source and target tokens by their number of factors.
        first_lines: int64, shape (2, 6), the first line with such a token, or -1.
    """

    flags: Int64Array
    fields: Int64Array
    counts: Int64Array
    source_hashes: Int64Array
    pair_hashes: Int64Array
    tokens_by_factors: Int64Array
    first_lines: Int64Array


@exact_kernel
def _look(text: ByteArray, line_offsets: Int64Array, look: LineProperties) -> None:
    """Fill the arrays of `look`."""
    flags, tokens_by_factors, first_lines = look.flags, look.tokens_by_factors, look.first_lines
    bars = np.empty(8, np.int64)
    for line in range(len(flags)):
        start, end = line_offsets[line], line_offsets[line + 1]
        look.source_hashes[line] = look.pair_hashes[line] = look.counts[line] = 0
        if end > start and text[end - 1] == LF:
            end -= 1
        returned = end > start and text[end - 1] == CR
        if returned:
            end -= 1
        count, line_flags = _find_bars(text, start, end, bars)
        look.fields[line] = count + 1
        line_flags |= _look_at_spacing(text, start, end)
        if returned:
            line_flags |= CARRIAGE_RETURN
        if skip_blanks(text, start, end) == end:
            line_flags |= BLANK
        if count < 2:
            flags[line] = line_flags
            continue
        source_flags, source_words, source_mask, source_rules, h = _look_at_phrase(
            text, start, bars[0], line, FNV_BASIS, tokens_by_factors[0], first_lines[0]
        )
        target_flags, target_words, target_mask, target_rules, both = _look_at_phrase(
            text, bars[0] + 3, bars[1], line, fnv(h, PIPE), tokens_by_factors[1], first_lines[1]
        )
        look.source_hashes[line], look.pair_hashes[line] = np.int64(h), np.int64(both)
        line_flags |= source_flags | target_flags
        if source_flags & target_flags & LABEL_AT_END:
            line_flags |= RULE
        if skip_blanks(text, start, bars[0]) == bars[0]:
            line_flags |= EMPTY_SOURCE
        if skip_blanks(text, bars[0] + 3, bars[1]) == bars[1]:
            line_flags |= EMPTY_TARGET
        for field in range(min(count + 1, 4)):
            if _has_gap(text, bars[field - 1] + 3 if field else start, bars[field]):
                line_flags |= GAP | (PHRASE_GAP if field < 2 else 0)
        if source_rules != target_rules:
            line_flags |= NON_TERMINALS
        labels = (source_flags & LABEL_AT_END > 0) + 2 * (target_flags & LABEL_AT_END > 0)
        behind, look.counts[line] = _look_behind_scores(
            text, bars, count, source_words, target_words, source_mask, target_mask, labels
        )
        line_flags |= behind
        if source_rules == 0 and line_flags & NON_TERMINALS:
            # Moses only checks the partners of source non-terminals.
            line_flags ^= NON_TERMINALS | TARGET_NON_TERMINAL
        flags[line] = line_flags


def line_properties(text: ByteArray, line_offsets: Int64Array) -> LineProperties:
    """Return the properties of whole lines.

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,).
    """
    lines = len(line_offsets) - 1
    flags, fields, counts, sources, pairs = (np.empty(lines, np.int64) for _ in range(5))
    factors = np.zeros((2, MOST_FACTORS + 1), np.int64)
    first_lines = np.full((2, MOST_FACTORS + 1), -1, np.int64)
    look = LineProperties(flags, fields, counts, sources, pairs, factors, first_lines)
    _look(text, line_offsets, look)
    return look


@exact_kernel
def _count_scores(text: ByteArray, line_offsets: Int64Array, lines: Int64Array, token_counts: Int64Array) -> None:
    """Store the number of tokens in the third field of line lines[k] in token_counts[k]."""
    for k in range(len(lines)):
        i, end = line_offsets[lines[k]], line_offsets[lines[k] + 1]
        for _ in range(2):
            bar = find_separator(text, i, end)
            i = bar + 3 if bar >= 0 else end
        bar = find_separator(text, i, end)
        end = bar if bar >= 0 else end
        token_counts[k] = 0
        i = skip_blanks(text, i, end)
        while i < end and text[i] != LF and text[i] != CR:
            i = skip_blanks(text, token_end(text, i, end), end)
            token_counts[k] += 1


def count_scores_of(text: ByteArray, line_offsets: Int64Array, lines: Int64Array) -> Int64Array:
    """Return the number of words in the third field of each selected line, whether they are numbers or not.

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,).
        lines: int64, shape (L,).
    """
    token_counts = np.empty(len(lines), np.int64)
    _count_scores(text, line_offsets, lines, token_counts)
    return token_counts


@exact_kernel
def _beginning(text: ByteArray, start: int, end: int) -> int:
    """Return the start of a line without leading blanks; an empty source keeps the blank before `|||`."""
    i = skip_blanks(text, start, end)
    return i - 1 if i > start and i < end and text[i] == PIPE else i


@exact_kernel
def lines_out_of_order(text: ByteArray, line_offsets: Int64Array, trimmed: bool = False) -> tuple[int, int]:
    """Return the number of lines that sort before their predecessor in byte order, and the first (0-based; -1: none).

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,).
        trimmed: whether leading blanks of lines are ignored, as in some programs.
    """
    count, first = 0, -1
    for line in range(1, len(line_offsets) - 1):
        a, a_end = line_offsets[line - 1], line_offsets[line]
        b, b_end = a_end, line_offsets[line + 1]
        if trimmed:
            a, b = _beginning(text, a, a_end), _beginning(text, b, b_end)
        while a < a_end and b < b_end and text[a] == text[b] and text[a] != LF:
            a += 1
            b += 1
        left = text[a] if a < a_end and text[a] != LF else -1
        right = text[b] if b < b_end and text[b] != LF else -1
        if left > right:
            count += 1
            if first < 0:
                first = line
    return count, first


def lines_not_utf8(text: ByteArray, line_offsets: Int64Array) -> Int64Array:
    """Return the 0-based numbers of the lines that are not valid UTF-8."""
    shown = valid_utf8(text)
    if shown is text:
        return np.zeros(0, np.int64)
    return np.unique(np.searchsorted(line_offsets, np.flatnonzero(shown != text), "right") - 1)
