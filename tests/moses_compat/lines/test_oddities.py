"""Oddities of lines compared with naive Python, line by line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines import oddities as odd
from moses_compat.lines.fields import line_offsets_of
from tests import naive
from tests.moses_compat.tables.test_inspect import is_count, is_joint_possible, line_oddities
from tests.tables import MALFORMED, TABLES
from tests.test_promise import tables_with_oddities
from tests.variants import for_each

NAMES = {
    odd.BLANK: "blank line", odd.EMPTY_SOURCE: "empty source", odd.EMPTY_TARGET: "empty target",
    odd.LABEL_AT_END: "label at the end", odd.BRACKET_INSIDE: "bracket inside",
    odd.NON_TERMINALS: "non-terminals differ", odd.BAD_ALIGNMENT: "bad alignment", odd.NO_ALIGNMENT: "no alignment",
    odd.ALIGNMENT_BEYOND: "alignment beyond the phrase", odd.BAD_COUNTS: "bad counts", odd.SPARSE: "sparse scores",
    odd.BAD_SPARSE: "bad sparse scores", odd.PROPERTIES: "properties", odd.BAD_PROPERTY: "bad property",
    odd.UNKNOWN_PROPERTY: "unknown property", odd.EXTRA_FIELDS: "more than 7 fields",
    odd.CARRIAGE_RETURN: "carriage return", odd.TAB: "tab",
    odd.DOUBLE_SPACE: "double space", odd.GAP: "gap between tokens", odd.TIGHT: "no space next to |||",
    odd.POINTS_WITHOUT_TARGET: "alignment of an empty target", odd.BEYOND_TOKENS: "alignment beyond the tokens",
    odd.BEYOND_TARGET: "alignment beyond the target", odd.PHRASE_GAP: "gap inside a phrase",
    odd.BARS_ONLY: "token of bars", odd.ZERO_BYTE: "zero byte", odd.EMPTY_BRACKETS: "empty brackets",
    odd.TARGET_NON_TERMINAL: "non-terminal of the target alone", odd.BRACKETS: "token in brackets",
}  # fmt: skip


def look(data):
    text = np.frombuffer(data, np.uint8)
    offsets = line_offsets_of(text)
    return text, offsets, odd.line_properties(text, offsets)


def check(data):
    _, _, result = look(data)
    lines = naive.split_lines(data)
    assert len(result.flags) == len(lines)
    sources, pairs = {}, {}
    for line, flags, fields, kind, source, pair in zip(lines, *result[:5], strict=True):
        # The values of scores are not examined here.
        expected, tokens = line_oddities(line, "ok")
        names = {name for bit, name in NAMES.items() if flags & bit}
        if tokens is None:
            assert (source, pair) == (0, 0)
            spacing = {"tab", "double space", "no space next to |||", "carriage return", "blank line", "zero byte"}
            assert names == expected & spacing
            continue
        assert names == expected
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        counts = naive.tokens((content.split(b"|||") + [b""] * 2)[4])
        sides = "sides" if any(map(is_count, counts[:2])) else "none"
        assert odd.COUNT_KINDS[kind] == (
            "joint" if len(counts) > 2 and is_count(counts[2]) and is_joint_possible(counts) else sides
        )
        assert fields == len(content.split(b"|||"))
        # Equal tokens have equal hashes whatever the white space; different tokens have different hashes.
        assert sources.setdefault(tuple(tokens[0]), source) == source
        assert pairs.setdefault((tuple(tokens[0]), tuple(tokens[1])), pair) == pair
    assert len(set(pairs.values())) == len(pairs)


@for_each("name", sorted(TABLES))
def test_tables_of_all_shapes(name):
    check(TABLES[name])


@given(tables_with_oddities())
def test_random_tables(table):
    check(table)


LINES = st.lists(st.sampled_from([b"", b"a", b"ab", b"b", b"\xff", b"a ", b"\x00", b"\xc3\xa4", b"\xc3"]), max_size=9)


@given(LINES, st.booleans())
def test_lines_out_of_order(lines, ended):
    data = b"\n".join(lines) + b"\n" * ended
    text, offsets, _ = look(data)
    rows = [line.removesuffix(b"\n") for line in naive.split_lines(data)]
    below = [i for i in range(1, len(rows)) if rows[i] < rows[i - 1]]
    assert odd.lines_out_of_order(text, offsets) == (len(below), below[0] if below else -1)


@given(LINES, st.booleans())
def test_lines_that_are_not_utf8(lines, ended):
    data = b"\n".join(lines) + b"\n" * ended
    text, offsets, _ = look(data)
    wrong = [
        i for i, line in enumerate(naive.split_lines(data)) if line.decode(errors="replace").encode() != line
    ]  # fmt: skip
    assert odd.lines_not_utf8(text, offsets).tolist() == wrong


def test_factors_are_counted_with_their_first_line():
    _, _, result = look(b"a b|c ||| x ||| 1\nno entry a|b|c\nb|c|d|e|f|g e ||| y|z [X] ||| 1\n")
    assert result.tokens_by_factors.tolist() == [[0, 2, 1, 0, 0, 1], [0, 1, 1, 0, 0, 0]]
    assert result.first_lines.tolist() == [[-1, 0, 0, -1, -1, 2], [-1, 0, 2, -1, -1, -1]]


@pytest.mark.parametrize(("line", "rule"), [(b"a [X] ||| b [X] ||| 1", True), (b"a [X] ||| b ||| 1", False)])
def test_a_rule_has_a_label_at_both_ends(line, rule):
    assert bool(look(line)[2].flags[0] & odd.RULE) == rule


@given(tables_with_oddities())
def test_numbers_of_scores(table):
    text, offsets, _ = look(table)
    lines = naive.split_lines(table)
    expected = [len((line.replace(b"\r", b"").rstrip(b"\n").split(b"|||") + [b""] * 2)[2].split()) for line in lines]
    plain = [i for i, line in enumerate(lines) if b"\r" not in line[:-2] and b"\0" not in line]
    rows = np.array(plain, np.int64)
    assert odd.count_scores_of(text, offsets, rows).tolist() == [expected[i] for i in plain]


def test_lines_with_too_few_fields_have_no_pair():
    _, _, result = look(MALFORMED)
    assert (result.fields == [4, 4, 1, 3, 2, 1, 3, 4, 3]).all()
    assert np.flatnonzero(result.pair_hashes == 0).tolist() == [2, 4, 5]
