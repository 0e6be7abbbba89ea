"""The counts of a line against slow Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.lines.counts import LARGEST_COUNT, block_counts, read_counts
from moses_compat.tables.parser import TableParser
from phrasetool.phrases import EntryBlock
from tests import naive


@pytest.mark.parametrize(
    ("rest", "counts"),
    [
        (b"||| 0-0 ||| 5 4 3", [5, 4, 3]), (b"|||||| 5 4 3|||", [5, 4, 3]), (b"||| x-y ||| 1 2\r", [1, 2, math.nan]),
        (b"||| ||| 1 x 3 4", [1, math.nan, 3]), (b"||| 1 2 3", [math.nan] * 3), (b"", [math.nan] * 3),
    ],
)  # fmt: skip
def test_counts(rest, counts):
    text = np.frombuffer(rest + b"\n", np.uint8)
    np.testing.assert_array_equal(read_counts(text, np.array([0]), np.array([len(text)])), [counts])


NUMBERS = st.sampled_from([b"1", b"2.5", b"0", b"1e+06", b"-3", b"x", b"nan", b"inf", b"5\r"])
BLANKS = st.sampled_from([b" ", b"  ", b"\t", b" \r "])
FIELD = st.tuples(st.lists(st.tuples(NUMBERS, BLANKS), max_size=5), st.sampled_from([b"", b"||| 7 7 7"]))


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(NUMBERS, BLANKS), max_size=5), st.sampled_from([b"", b"||| 7 7 7"])), max_size=6
    )
)
def test_any_counts(lines):
    rows, text, starts, ends = [], b"", [], []
    for numbers, more in lines:
        field = b" " + b"".join(number + blank for number, blank in numbers)
        starts.append(len(text) + 1)
        text += b"1||| 0-0 |||" + field + more + b"\n"
        ends.append(len(text))
        row = [math.nan] * 3
        for column, token in enumerate(field.replace(b"\r", b" ").split()[:3]):
            if naive.number_fault(token) == "ok":
                row[column] = float(np.float32(float(token)))
        rows.append(row)
    found = read_counts(np.frombuffer(text, np.uint8), np.array(starts, np.int64), np.array(ends, np.int64))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(rows).reshape(-1, 3))


def naive_block_counts(line, fault):
    """c(t), c(s) and c(s,t) of a line as Moses' fields hold them, and whether the last was derived."""
    fields = line.rstrip(b"\n").split(b"|||")
    row = [math.nan] * 3
    if fault != "ok" or len(fields) < 5:
        return row, False
    tokens = fields[4].replace(b"\r", b" ").split()
    for column, token in enumerate(tokens[:3]):
        if naive.number_fault(token) == "ok" and 0 <= float(token) <= LARGEST_COUNT:
            row[column] = float(token)
    phi = float(fields[2].split()[0])
    if len(tokens) == 2 and not math.isnan(row[0]) and not math.isnan(row[1]) and 0 <= phi * row[0] <= LARGEST_COUNT:
        joint = phi * row[0]
        row[2] = float(round(joint)) if abs(joint - round(joint)) <= 1e-5 * joint else joint
        return row, True
    return row, False


COUNTS = st.lists(st.sampled_from([b"1", b"27340", b"2.5", b"0", b"1.5599e+06", b"-3", b"x", b"nan", b"inf", b"1e12"]))
LINES = st.builds(
    lambda source, target, scores, alignment, counts, gap, more, end: (
        b"%s |||%s||| %s |||%s|||%s%s%s%s" % (source, target, scores, alignment, gap, gap.join(counts), more, end)
    ),
    st.sampled_from([b"das", b"||", b"|", b"das haus ist ein langer satz"]),
    st.sampled_from([b" the ", b"", b" | ", b"||"]),
    st.sampled_from([b"0.25 1", b"1 0.5", b"0.333333 1", b"x 1", b"1"]),
    st.sampled_from([b" 0-0 ", b" ", b"", b" 0-0 1-1 2-2 3-3 "]),
    COUNTS,
    st.sampled_from([b" ", b"  ", b"\t"]),
    st.sampled_from([b"", b" ||| |||", b"||| a 1 ||| {{x}}", b" ||||", b"|||||| 1 2 3"]),
    st.sampled_from([b"\n", b"\r\n"]),
)
FEW_FIELDS = st.sampled_from([b"\n", b"a ||| b\n", b"a ||| b ||| 1 1\n", b"a ||| b ||| 1 1 ||| ||| \n", b"|||||||\n"])


@given(st.lists(st.one_of(LINES, LINES, FEW_FIELDS), max_size=8), st.booleans(), st.integers(0, 9))
def test_counts_of_blocks(lines, last_newline, shift):
    """With the fields that were found, and without any; at all alignments in memory."""
    text = b"".join(lines)
    text = text if last_newline else text.removesuffix(b"\n")
    lines = text.split(b"\n")[: text.count(b"\n") + (not text.endswith(b"\n"))] if text else []
    room = np.zeros(len(text) + shift, np.uint8)
    room[shift:] = np.frombuffer(text, np.uint8)
    block, _ = TableParser(scores=2)(0, room[shift:])
    bare = EntryBlock(
        0, block.text, block.line_offsets, *[np.zeros(0, np.int64)] * 3, block.group_offsets, block.source_lengths,
        block.sources, block.targets, block.faulty,
    )  # fmt: skip
    expected = [
        naive_block_counts(lines[i], "bad" if faulty else "ok") for i, faulty in enumerate(block.faulty.tolist())
    ]
    for found in (block_counts(block), block_counts(bare)):
        np.testing.assert_allclose(found.values, np.array([row for row, _ in expected]).reshape(-1, 3), rtol=1e-12)
        assert found.derived.tolist() == [derived for _, derived in expected]
