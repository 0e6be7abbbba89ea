import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.tables.parser import TableParser, count_scores, scan_lines
from phrasetool.vocabulary import Vocabulary
from tests import naive
from tests.moses_compat.lines.test_numbers import BAD_NUMBERS, GOOD_NUMBERS
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES
from tests.variants import for_each

SOURCE_WORDS = [b"<unk>", b"a", b"b", b"'s", b"|", b"&", b"[", b"\xe4", b"<", b"&lt;"]
TARGET_WORDS = [b"<unk>", b"x", b"y", b"[X", b"a", b"\xc3\xa4", b"]"]
FAULTS = ["ok", "few fields", "not a number", "wrong count", "nan"]

TOKENS = [
    b"a", b"b", b"x", b"&apos;s", b"&amp;", b"&amp;lt;", b"&#124;", b"|", b"a|NN", b"&apos;s|NN", b"zz|NN", b"[X]",
    b"[X][Y]", b"[]", b"[X", b"\xe4", b"\xc3\xa4", b"&#91;", b"&bra;", b"&", b"zz", b"\x00", b"||", b"|a", b"&lt;|b|c",
]  # fmt: skip
BLANKS = [b" ", b" ", b" ", b"  ", b"\t", b" \t "]


@st.composite
def fields(draw, items, least, most):
    chosen = draw(st.lists(st.sampled_from(items), min_size=least, max_size=most))
    text = draw(st.sampled_from([b" ", b" ", b"", b"  "]))
    for token in chosen:
        text += token + draw(st.sampled_from(BLANKS))
    return text


def scores(numbers):
    return st.one_of(fields(GOOD_NUMBERS, 2, 2), fields(numbers, 0, 4))


@st.composite
def good_lines(draw):
    parts = [draw(fields(TOKENS[:3], 1, 2)), draw(fields(TOKENS, 0, 4)), draw(scores(GOOD_NUMBERS + BAD_NUMBERS))]
    rest = draw(st.lists(st.sampled_from([b" 0-0 ", b" 3 2 1 ", b" ", b"", b" {{Tree [X]}}", b"|"]), max_size=5))
    return b"|||".join([*parts, *rest])


JUNK = st.one_of(
    st.just(b""),
    st.just(b"a ||| x"),
    st.just(b" |||||| 1"),
    st.lists(st.sampled_from([b"a", b"|", b"||", b"|||", b" ", b"\t", b"\r", b"1", b"[", b"]", b"&"]), max_size=12).map(
        b"".join
    ),
)


@st.composite
def texts(draw):
    lines = draw(st.lists(st.one_of(good_lines(), good_lines(), good_lines(), JUNK), max_size=14))
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    text = b"".join(line + end for line in lines)
    return text if draw(st.booleans()) else text[: -len(end)]


def array(data):
    return np.frombuffer(data, np.uint8)


def check_scan(data, expected):
    lines, groups = naive.parse_table(data, expected)
    requested = (0, 2, 1)
    scan = scan_lines(array(data), expected, requested)
    assert scan.line_offsets.tolist() == [0, *(line.end for line in lines)]
    assert [FAULTS[fault] for fault in scan.faults] == [line.fault for line in lines]
    assert scan.item_counts.tolist() == [line.found for line in lines]
    assert scan.score_ends.tolist() == [line.score_end for line in lines]
    # A table without lines has no group.
    assert scan.group_offsets.tolist() == (groups if lines else [0])
    for i, line in enumerate(lines):
        text = data[line.start : line.end]
        source = text[: scan.source_ends[i] - line.start] if scan.source_ends[i] >= 0 else None
        assert source == line.source
        target = data[scan.source_ends[i] + 3 : scan.target_ends[i]] if scan.target_ends[i] >= 0 else None
        assert target == line.target
        if line.fault == "ok":
            for index, column in enumerate(requested):
                if column < line.found:
                    assert scan.columns[i, index] == pytest.approx(line.values[column], rel=1e-12, abs=1e-300)


@settings(max_examples=250)
@given(texts(), st.sampled_from([-1, 1, 2, 3]))
@example(b"", -1)
@example(b"\n", -1)
@example(b"a", 2)
@example(b"|||", 2)
@example(b"a ||| b ||| 0.5\r", 1)
def test_scan_agrees_with_naive(data, expected):
    check_scan(data, expected)


@for_each("table", TABLES)
def test_moses_tables(table):
    scores = naive.first_score_count(table)
    check_scan(table, scores)
    assert not scan_lines(array(table), scores).faults.any()
    check_parser(table, scores)


def check_parser(data, expected):
    source, target = Vocabulary(SOURCE_WORDS), Vocabulary(TARGET_WORDS)
    lines, groups = naive.parse_table(data, expected)
    block, faults = TableParser(source, target, expected, (0,), fingerprints=True)(100, array(data))
    assert (block.first_entry, len(block)) == (100, len(lines))
    assert block.text.tobytes() == data
    keys = naive.group_sources(lines, groups) if lines else []
    assert [phrase.tolist() for phrase in block.sources] == [naive.word_ids(key, SOURCE_WORDS) for key in keys]
    assert block.source_lengths.tolist() == [
        sum(not naive.is_label(token) for token in naive.tokens(key)) for key in keys
    ]
    for line, phrase, number in zip(lines, block.targets, block.fingerprints, strict=True):
        if line.target is not None:
            assert phrase.tolist() == naive.word_ids(line.target, TARGET_WORDS)
            assert number == naive.fnv(line.pair, 32)
    assert block.malformed.tolist() == [line.fault != "ok" for line in lines]
    assert [fault.entry - 100 for fault in faults] == [i for i, line in enumerate(lines) if line.fault != "ok"]


@settings(max_examples=250)
@given(texts(), st.sampled_from([-1, 2]))
@example(b"", -1)
@example(b"||| x ||| 1\n", -1)
def test_parser_agrees_with_naive(data, expected):
    check_parser(data, expected)


def test_parser_without_vocabularies():
    block, _ = TableParser()(0, array(TABLES["seven fields"]))
    assert not len(block.sources.words)
    assert not len(block.targets.words)
    assert block.source_lengths.sum() > 0


def test_fault_messages():
    _, faults = TableParser(scores=2)(0, array(MALFORMED))
    assert [fault.entry + 1 for fault in faults] == MALFORMED_LINES
    assert (faults[:2], faults[-1]) == (list(faults)[:2], list(faults)[-1])
    messages = [fault.message for fault in faults]
    assert "not a number" in messages[0]
    assert messages[1].endswith("found 1")
    assert "NaN" in messages[2]
    assert messages[3].endswith("found 2")
    assert messages[5] == "expected 2 scores as on the lines before, found 3"
    assert messages[6] == "expected 2 scores as on the lines before, found 0"


@given(texts())
def test_count_scores(data):
    assert count_scores(array(data)) == naive.first_score_count(data)


@pytest.mark.parametrize("half", ["score half", "score half without alignment"])
def test_half_tables_are_refused(half):
    alignment = b"0-0" if half == "score half" else b""
    text = b"das ||| the ||| " + alignment + b" ||| 0.5 0.4 ||| 3 2 |||\n"
    _, faults = TableParser()(0, array(text))
    assert len(faults) == 1
