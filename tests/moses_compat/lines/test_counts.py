"""Counts of lines compared with naive Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.counts import LARGEST_COUNT, block_counts, count_tokens, line_counts, shown_counts
from moses_compat.tables.parser import TableParser
from phrasetool.phrases import EntryBlock
from tests import naive
from tests.variants import for_each


@for_each(
    ("rest", "counts", "shown"),
    [
        (b" ||| 0-0 ||| 5 4 3", [5, 4, 3], "5 4 3"), (b"|||||| 5 4 3|||", [5, 4, 3], "5 4 3"),
        (b" ||| x-y ||| 8 5\r", [8, 5, 4], "8 5"), (b" ||| ||| 3 x 3 4", [3, math.nan, 3], "3 x 3 4"),
        (b" ||| ||| 8 2", [8, 2, math.nan], "8 2"), (b" ||| ||| 5 4 5", [5, 4, math.nan], "5 4 5"),
        (b" ||| ||| 5 4 0", [5, 4, math.nan], "5 4 0"), (b" ||| ||| 0 0 0", [0, 0, math.nan], "0 0 0"),
        (b" ||| ||| 1.23456e+06 1234567 1234567", [1234560, 1234567, 1234567], "1.23456e+06 1234567 1234567"),
        (b" ||| 1 2 3", [math.nan] * 3, ""), (b"", [math.nan] * 3, ""), (b" ||| |||", [math.nan] * 3, ""),
        (b" ||| ||| 7 |||", [7, math.nan, math.nan], "7"), (b" ||| ||| 5 4 1,5 |||", [5, 4, math.nan], "5 4 1,5"),
    ],
)  # fmt: skip
def test_counts_of_a_line(rest, counts, shown):
    line = b"a ||| b ||| 0.5 1 1 1" + rest + b"\n"
    text = np.frombuffer(line, np.uint8)
    np.testing.assert_array_equal(line_counts(text, np.array([0, len(text)])).values, [counts])
    assert shown_counts(line) == (f" (found {shown!r})" if shown else "")


@pytest.mark.parametrize(
    ("scores", "joint"), [(b"0.5", math.nan), (b" 0.5 1\t1", math.nan), (b"0.5 1  1 1", 4), (b"0.5 1 1 1 1 ", 4)]
)
def test_joint_counts_are_derived_from_four_or_more_scores_only(scores, joint):
    text = np.frombuffer(b"a ||| b |||" + scores + b"||| ||| 8 5\n", np.uint8)
    np.testing.assert_array_equal(line_counts(text, np.array([0, len(text)])).values, [[8, 5, joint]])


COUNTS = st.lists(st.sampled_from([b"1", b"27340", b"2.5", b"0", b"1.5599e+06", b"-3", b"x", b"nan", b"inf", b"1e12"]))
LINES = st.builds(
    lambda source, target, scores, alignment, counts, gap, more, end: (
        b"%s |||%s||| %s |||%s|||%s%s%s%s" % (source, target, scores, alignment, gap, gap.join(counts), more, end)
    ),
    st.sampled_from([b"das", b"||", b"|", b"das haus ist ein langer satz"]),
    st.sampled_from([b" the ", b"", b" | ", b"||"]),
    st.sampled_from([b"0.25 1 1 1", b"1 0.5\t0 1", b"2.718 1 1 1", b"0.333333 1 1 1", b"x 1 1 1", b"1 1 1"]),
    st.sampled_from([b" 0-0 ", b" ", b"", b" 0-0 1-1 2-2 3-3 "]),
    COUNTS,
    st.sampled_from([b" ", b"  ", b"\t"]),
    st.sampled_from([b"", b" ||| |||", b"||| a 1 ||| {{x}}", b" ||||", b"|||||| 1 2 3"]),
    st.sampled_from([b"\n", b"\r\n"]),
)
FEW_FIELDS = st.sampled_from(
    [b"\n", b"a ||| b\n", b"a ||| b ||| 1 1 1 1\n", b"a ||| b ||| 1 1 1 1 ||| ||| \n", b"|||||||\n"]
)


@given(st.lists(st.one_of(LINES, LINES, FEW_FIELDS), max_size=8), st.booleans(), st.integers(0, 9))
def test_counts_of_blocks(lines, last_newline, shift):
    """Counts are read with and without the offsets of the fields, at all alignments in memory."""
    text = b"".join(lines)
    text = text if last_newline else text.removesuffix(b"\n")
    lines = text.split(b"\n")[: text.count(b"\n") + (not text.endswith(b"\n"))] if text else []
    room = np.zeros(len(text) + shift, np.uint8)
    room[shift:] = np.frombuffer(text, np.uint8)
    block, _ = TableParser(scores=4)(0, room[shift:])
    bare = EntryBlock(
        0, block.text, block.line_offsets, *[np.zeros(0, np.int64)] * 3, block.group_offsets, block.source_lengths,
        block.sources, block.targets, block.malformed,
    )  # fmt: skip
    expected = [
        naive.entry_counts(lines[i], LARGEST_COUNT, "bad" if malformed else "ok")
        for i, malformed in enumerate(block.malformed.tolist())
    ]
    for result in (block_counts(block), block_counts(bare)):
        np.testing.assert_allclose(result.values, np.array([row for row, _ in expected]).reshape(-1, 3), rtol=1e-12)
        assert result.derived.tolist() == [derived for _, derived in expected]
    tokens = [len((line.split(b"|||") + [b""] * 5)[4].replace(b"\r", b" ").split()) for line in lines]
    assert count_tokens(block.text, block.line_offsets, np.arange(len(lines))).tolist() == tokens
