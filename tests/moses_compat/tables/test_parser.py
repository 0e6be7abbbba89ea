import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from moses_compat.files.kinds import HEAD_BYTES, kind_of
from moses_compat.tables.blocks import FaultPolicy, last_group_start, raw_blocks
from moses_compat.tables.parser import TableParser, count_scores, scan_lines
from phrasetool.errors import DataError
from phrasetool.vocabulary import Vocabulary
from tests import naive
from tests.tables import FAULTY, FAULTY_LINES, TABLES

SOURCE_WORDS = [b"<unk>", b"a", b"b", b"'s", b"|", b"&", b"[", b"\xe4", b"<", b"&lt;"]
TARGET_WORDS = [b"<unk>", b"x", b"y", b"[X", b"a", b"\xc3\xa4", b"]"]
FAULTS = ["ok", "few fields", "not a number", "wrong count", "nan"]

TOKENS = [
    b"a", b"b", b"x", b"&apos;s", b"&amp;", b"&amp;lt;", b"&#124;", b"|", b"a|NN", b"&apos;s|NN", b"zz|NN", b"[X]",
    b"[X][Y]", b"[]", b"[X", b"\xe4", b"\xc3\xa4", b"&#91;", b"&bra;", b"&", b"zz", b"\x00", b"||", b"|a", b"&lt;|b|c",
]  # fmt: skip
GOOD_NUMBERS = [
    b"0.5", b"1", b"0", b"-1", b"+1", b"1e-5", b"1E+5", b".5", b"5.", b"-.25", b"2.718", b"5.25e-24", b"1.5599e+06",
    b"0.000352609", b"12345678901234567890", b"0.1234567890123456789", b"inf", b"-INF", b"+Inf", b"1e-44", b"00.10",
]  # fmt: skip
BAD_NUMBERS = [
    b"nan", b"-NaN", b"NAN", b"zero", b"0.1x", b"1e", b"1e+", b".", b"+", b"-", b"--1", b"1.2.3", b"e5", b"0x1p3",
    b"1,5", b"infinity", b"1_0", b"in", b"0.5\r", b"0-0", b"1e5.0", b"1-", b"\xb2", b"naninf",
]  # fmt: skip
NEARLY_WORDS = [b"inx", b"nab", b"ink", b"nap", b".inf", b"+.nan"]
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
    wanted = (0, 2, 1)
    scan = scan_lines(array(data), expected, wanted)
    assert scan.line_offsets.tolist() == [0, *(line.end for line in lines)]
    assert [FAULTS[fault] for fault in scan.faults] == [line.fault for line in lines]
    assert scan.found.tolist() == [line.found for line in lines]
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
            for place, column in enumerate(wanted):
                if column < line.found:
                    assert scan.columns[i, place] == pytest.approx(line.values[column], rel=1e-12, abs=1e-300)


@settings(max_examples=250)
@given(texts(), st.sampled_from([-1, 1, 2, 3]))
@example(b"", -1)
@example(b"\n", -1)
@example(b"a", 2)
@example(b"|||", 2)
@example(b"a ||| b ||| 0.5\r", 1)
def test_scan_agrees_with_naive(data, expected):
    check_scan(data, expected)


def test_scan_of_moses_tables(table):
    check_scan(table, naive.first_score_count(table))
    assert not scan_lines(array(table), naive.first_score_count(table)).faults.any()


@pytest.mark.parametrize("token", GOOD_NUMBERS, ids=repr)
def test_good_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token + b" 1\n"), 2, [0])
    assert FAULTS[scan.faults[0]] == "ok"
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12)


@pytest.mark.parametrize("token", BAD_NUMBERS + NEARLY_WORDS, ids=repr)
def test_bad_number(token):
    scan = scan_lines(array(b"a ||| b ||| 1 " + token + b" 1\n"), 3, [0])
    assert FAULTS[scan.faults[0]] == naive.number_fault(token) != "ok"


@given(st.from_regex(rb"\A[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?\Z"))
def test_value_of_a_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token), 1, [0])
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "token",
    [b"0e400", b"0." + b"0" * 330 + b"1e331", b"1" * 330 + b"e-330", b"1e-99999999999999999999", b"1." + b"1" * 400],
    ids=lambda token: token[:12].decode(),
)  # fmt: skip
def test_value_of_an_extreme_number(token):
    scan = scan_lines(array(b"a ||| b ||| " + token), 1, [0])
    assert FAULTS[scan.faults[0]] == "ok"
    assert scan.columns[0, 0] == pytest.approx(float(token), rel=1e-12, abs=0)


def check_parser(data, expected):
    source, target = Vocabulary(SOURCE_WORDS), Vocabulary(TARGET_WORDS)
    lines, groups = naive.parse_table(data, expected)
    block, faults = TableParser(source, target, expected, (0,), fingerprints=True)(3, 100, array(data))
    assert (block.index, block.first_entry, len(block)) == (3, 100, len(lines))
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
    assert block.faulty.tolist() == [line.fault != "ok" for line in lines]
    assert [fault.entry - 100 for fault in faults] == [i for i, line in enumerate(lines) if line.fault != "ok"]


@settings(max_examples=250)
@given(texts(), st.sampled_from([-1, 2]))
@example(b"", -1)
@example(b"||| x ||| 1\n", -1)
def test_parser_agrees_with_naive(data, expected):
    check_parser(data, expected)


def test_parser_of_moses_tables(table):
    check_parser(table, naive.first_score_count(table))


def test_parser_without_vocabularies():
    block, _ = TableParser()(0, 0, array(TABLES["seven fields"]))
    assert not len(block.sources.words)
    assert not len(block.targets.words)
    assert block.source_lengths.sum() > 0


def test_fault_messages():
    _, faults = TableParser(scores=2)(0, 0, array(FAULTY))
    assert [fault.entry + 1 for fault in faults] == FAULTY_LINES
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


@given(texts())
def test_last_group_start(data):
    lines, groups = naive.parse_table(data)
    start = int(last_group_start(array(data)))
    if len(groups) < 3:
        assert start == 0
    else:
        assert start == lines[groups[-2]].start


@pytest.mark.parametrize("half", ["score half", "score half without alignment"])
def test_half_tables_are_refused(half):
    alignment = b"0-0" if half == "score half" else b""
    text = b"das ||| the ||| " + alignment + b" ||| 0.5 0.4 ||| 3 2 |||\n"
    _, faults = TableParser()(0, 0, array(text))
    assert len(faults) == 1


class _Pieces:
    """An input that hands out bytes as `streams.Input` does."""

    name = "table"

    def __init__(self, data):
        self._data, self._at = data, 0

    def read(self, size):
        piece = self._data[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def peek(self, size):
        return self._data[self._at : self._at + size]

    def position(self):
        return self._at


@settings(max_examples=150)
@given(texts(), st.one_of(st.integers(1, 60), st.integers(1, 10000)))
def test_raw_blocks_number_lines_and_keep_groups_whole(data, size):
    # What looks like another kind of file is refused; see test_table_kind.
    assume(kind_of("table", data[:HEAD_BYTES]) is None)
    lines, groups = naive.parse_table(data)
    blocks = list(raw_blocks(_Pieces(data), size))
    assert b"".join(block.text.tobytes() for block in blocks) == data
    borders = {lines[i].start for i in groups[:-1]} if lines else set()
    at = entry = 0
    for index, block in enumerate(blocks):
        assert (block.index, block.first_entry) == (index, entry)
        assert at in borders
        at += len(block.text)
        entry += block.lines
    assert entry == len(lines)
    if blocks:
        assert blocks[-1].scores == naive.first_score_count(data)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 512, 4096, 10000])
def test_blocks_of_moses_tables(table, size):
    lines, groups = naive.parse_table(table)
    borders = {lines[i].start for i in groups[:-1]} if lines else set()
    at = 0
    for block in raw_blocks(_Pieces(table), size):
        assert at in borders
        assert table[at : at + len(block.text)] == block.text.tobytes()
        at += len(block.text)
    assert at == len(table)


def test_blocks_are_about_as_large_as_asked():
    sizes = [len(block.text) for block in raw_blocks(_Pieces(TABLES["lexicalised"] * 20), 4096)]
    assert len(sizes) > 10
    assert max(sizes) < 3 * 4096


def test_fault_policy():
    block, faults = TableParser(scores=2)(0, 0, array(FAULTY))
    good = [i + 1 not in FAULTY_LINES for i in range(9)]
    assert FaultPolicy("t", "skip").keep_mask(block, faults).tolist() == good
    assert FaultPolicy("t", "keep").keep_mask(block, faults).all()
    with pytest.raises(DataError, match=r"^t:2: a score is not a number$"):
        FaultPolicy("t").keep_mask(block, faults)
    with pytest.raises(ValueError, match="unknown action"):
        FaultPolicy("t", "ignore")
