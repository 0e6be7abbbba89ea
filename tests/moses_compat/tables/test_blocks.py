"""Blocks of a table, and marks by which unchanged lines are recognised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moses_compat.files.kinds import HEAD_BYTES, kind_of
from moses_compat.files.streams import Input
from moses_compat.tables import blocks as blocks_module
from moses_compat.tables.blocks import (
    LineMarks,
    RawBlock,
    TableScan,
    blocks,
    hash_lines,
    last_group_start,
    raw_blocks,
)
from moses_compat.tables.opening import scores_of_table
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from tests import naive
from tests.commands import write
from tests.moses_compat.tables.test_parser import array, texts
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES
from tests.variants import for_each

GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


@pytest.mark.parametrize(("data", "scores"), [(b"a ||| b ||| 1 2 3\n", 3), (b"a ||| b ||| 0.5 ||| 0-0\n", 1)])
def test_scores_of_a_table(tmp_path, data, scores):
    assert scores_of_table(str(write(tmp_path / "table.gz", data))) == scores


def test_no_entry(tmp_path):
    path = write(tmp_path / "table", b"")
    with pytest.raises(DataError, match=f"^{path}: holds no phrase-table entry$"):
        scores_of_table(str(path))


@given(texts())
def test_last_group_start(data):
    lines, groups = naive.parse_table(data)
    start = int(last_group_start(array(data)))
    if len(groups) < 3:
        assert start == 0
    else:
        assert start == lines[groups[-2]].start


class _Pieces:
    """An input that returns bytes like `streams.Input`."""

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
    # Data that looks like another kind of file is refused; see files/test_kinds.py.
    assume(kind_of("table", data[:HEAD_BYTES]) is None)
    lines, groups = naive.parse_table(data)
    blocks = list(raw_blocks(_Pieces(data), size))
    assert b"".join(block.text.tobytes() for block in blocks) == data
    borders = {lines[i].start for i in groups[:-1]} if lines else set()
    offset = entry = 0
    for block in blocks:
        assert block.first_entry == entry
        assert offset in borders
        offset += len(block.text)
        entry += block.lines
    assert entry == len(lines)
    if blocks:
        assert blocks[-1].scores == naive.first_score_count(data)


@settings(max_examples=150)
@given(texts(), st.integers(1, 200))
def test_long_groups_are_cut_where_a_line_with_a_source_begins(data, size):
    assume(kind_of("table", data[:HEAD_BYTES]) is None)
    lines, groups = naive.parse_table(data)
    blocks = list(raw_blocks(_Pieces(data), size, whole_groups=False))
    assert b"".join(block.text.tobytes() for block in blocks) == data
    heads = set(groups[:-1]) if lines else set()
    # A continued block begins with a line that has a source, but is not the first of its group.
    for block in blocks:
        assert block.continued == (block.first_entry not in heads)
        assert not block.continued or b"|||" in data[lines[block.first_entry].start : lines[block.first_entry].end]
    # A block may end in the middle of a group.
    longest = max((line.end - line.start for line in lines), default=0)
    if all(b"|||" in data[line.start : line.end] for line in lines):
        assert all(len(block.text) <= 2 * (size + 2 * longest) for block in blocks)


@for_each("table", TABLES)
def test_blocks_of_moses_tables(table):
    lines, groups = naive.parse_table(table)
    borders = {lines[i].start for i in groups[:-1]} if lines else set()
    for size in (1, 2, 7, 64, 512, 4096, 10000):
        offset = 0
        for block in raw_blocks(_Pieces(table), size):
            assert offset in borders, size
            assert table[offset : offset + len(block.text)] == block.text.tobytes(), size
            offset += len(block.text)
        assert offset == len(table), size


def test_blocks_are_about_as_large_as_asked():
    sizes = [len(block.text) for block in raw_blocks(_Pieces(TABLES["lexicalised"] * 20), 4096)]
    assert len(sizes) > 10
    assert max(sizes) < 3 * 4096


def test_actions_for_malformed_lines():
    block, faults = TableParser(scores=2)(0, array(MALFORMED))
    good = [i + 1 not in MALFORMED_LINES for i in range(9)]
    assert TableScan("skip").passes("t", block.malformed, faults).tolist() == good
    assert TableScan("keep").passes("t", block.malformed, faults).all()
    with pytest.raises(DataError, match=r"^t:2: a score is not a number$"):
        TableScan().passes("t", block.malformed, faults)
    with pytest.raises(ValueError, match="unknown action"):
        TableScan("ignore")


@given(texts(), st.one_of(st.integers(1, 60), st.integers(1, 10000)), st.randoms())
def test_the_end_of_a_block_depends_only_on_its_beginning(data, size, rng):
    """Reading from the beginning of any block gives the same blocks from there on."""
    assume(kind_of("table", data[:HEAD_BYTES]) is None)
    result = [block.text.tobytes() for block in raw_blocks(_Pieces(data), size)]
    if result:
        first = rng.randrange(len(result))
        rest = b"".join(result[first:])
        assume(kind_of("table", rest[:HEAD_BYTES]) is None)
        assert [block.text.tobytes() for block in raw_blocks(_Pieces(rest), size)] == result[first:]


class _Endless(_Pieces):
    """A table whose last line never ends."""

    def read(self, size):
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece.ljust(size, b"x")


@pytest.mark.parametrize("size", [16, 300, 1 << 14])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(size):
    source = _Endless(b"a ||| b ||| 1\n" * 7 + b"a ||| ")
    with pytest.raises(DataError, match=r"^table:8: the line has more than 1,000 bytes$"):
        list(raw_blocks(source, size, 1000))
    assert source.position() <= 4 * max(size, 1000)


@pytest.mark.parametrize("size", [16, 4096])
def test_the_longest_line(size):
    lines = [b"a ||| b ||| 1\n", b"a ||| %s ||| 1\n" % (b"b" * 84), b"b ||| c ||| 1\n"]
    data = b"".join(lines)
    assert sum(block.lines for block in raw_blocks(_Pieces(data), size, 97)) == 3
    with pytest.raises(DataError, match=r"^table:2: the line has more than 96 bytes$"):
        list(raw_blocks(_Pieces(data), size, 96))


ONE_GROUP = b"".join(b"das ||| t%d ||| 0.5 0.25\n" % i for i in range(300))


@given(texts(), st.one_of(st.integers(1, 60), st.integers(1, 10000)))
def test_groups_that_need_not_be_whole_are_cut_at_line_ends(data, size):
    assume(kind_of("table", data[:HEAD_BYTES]) is None)
    result = [block.tobytes() for block in blocks(_Pieces(data), size, whole_groups=False)]
    assert b"".join(result) == data
    assert all(block.endswith(b"\n") for block in result[:-1])
    longest = max((len(line) for line in data.split(b"\n")), default=0)
    assert all(len(block) <= max(size, 4 * longest + 4) for block in result)


def test_a_group_that_is_too_large_is_refused_by_its_first_line(monkeypatch):
    monkeypatch.setattr(blocks_module, "LARGEST_GROUP", 4096)
    data = b"ab ||| x ||| 0.5 0.25\n" + ONE_GROUP
    pieces = _Pieces(data)
    with pytest.raises(DataError, match=r"^table:2: the entries of this source take more than 4,096 bytes$"):
        list(blocks(pieces, 512))
    assert pieces.position() <= 4097 + 22
    # Accepted: larger blocks, smaller groups, and groups that need not be whole.
    assert len(list(blocks(_Pieces(data), 8192))) == 1
    assert len(list(blocks(_Pieces(data[:3000]), 512))) == 2
    assert len(list(blocks(_Pieces(data), 512, whole_groups=False))) > 10


def test_lines_without_a_source_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(blocks_module, "LARGEST_GROUP", 1024)
    data = b"\n" * 3000 + b"no table\n" * 100 + ONE_GROUP[:500]
    result = [block.tobytes() for block in blocks(_Pieces(data), 512)]
    assert b"".join(result) == data
    assert max(map(len, result)) <= 1025


def mix(h, value):
    h = ((h ^ (value & MASK)) * GOLDEN) & MASK
    return h ^ (h >> 29)


def naive_hash(line, seed):
    """Return the hash of a line, whose words of eight bytes enter two hashes alternately."""
    first, second = mix(GOLDEN, len(line)), mix(GOLDEN, seed)
    if len(line) < 8:
        for byte in line:
            first = mix(first, byte)
    else:
        for k in range(0, len(line) - 7, 8):
            word = int.from_bytes(line[k : k + 8], "little")
            first, second = (mix(first, word), second) if k % 16 == 0 else (first, mix(second, word))
        second = mix(second, int.from_bytes(line[-8:], "little"))
    return max(mix(first, second) >> 32, 1)


def raws_of(path, data, size=1 << 20, whole_groups=True):
    with Input(str(write(path, data))) as source:
        return list(raw_blocks(source, size, whole_groups=whole_groups))


def parsed(raw):
    return TableParser(scores=raw.scores, fingerprints=True)(raw.first_entry, raw.text, raw.line_offsets)[0]


def is_known(block):
    """Return whether a block must be recognised."""
    return bool(len(block) and block.ascending and not block.malformed.any() and block.source_lengths.all())


def raw_of(lines, scores=1):
    text = np.frombuffer(b"".join(lines), np.uint8)
    return RawBlock(0, np.cumsum([0, *map(len, lines)]), text, scores, 0)


@given(st.lists(st.binary(max_size=70), min_size=1), st.integers(-1, 9))
def test_hashes(lines, scores):
    assert hash_lines(raw_of(lines, scores)).tolist() == [naive_hash(line, scores) for line in lines]


@given(st.binary(min_size=1, max_size=70), st.data())
def test_changed_lines_have_other_hashes(line, data):
    position = data.draw(st.integers(0, len(line) - 1))
    changed = bytes([*line[:position], line[position] ^ data.draw(st.integers(1, 255)), *line[position + 1 :]])
    variants = [
        changed,
        line[:position] + line[position + 1 :],
        line[:position] + b"\0" + line[position:],
        line + b"\0",
        b"\0" + line,
    ]
    hashes = hash_lines(raw_of([line, *variants])).tolist()
    assert hashes[0] not in hashes[1:]


@for_each("name", [*TABLES, "malformed"])
def test_recognised_blocks_equal_parsed_ones(tmp_path, name):
    data = MALFORMED if name == "malformed" else TABLES[name]
    layouts = [(size, whole_groups) for size in (1, 300, 1 << 20) for whole_groups in (True, False)]
    for raw in (raw for layout in layouts for raw in raws_of(tmp_path / "t", data, *layout)):
        block = parsed(raw)
        result = LineMarks.of(raw, block).recognise(raw)
        assert (result is not None) == (is_known(block) and not raw.continued)
        if result:
            assert result.group_offsets.tolist() == block.group_offsets.tolist()
            assert result.source_lengths.tolist() == block.source_lengths.tolist()
            assert result.ascending
            assert not result.malformed.any()
            assert (result.first_entry, result.text.tobytes()) == (raw.first_entry, raw.text.tobytes())


def test_other_lines_are_not_recognised(tmp_path):
    data = TABLES["lexicalised"]
    (raw,) = raws_of(tmp_path / "t", data)
    marks = LineMarks.of(raw, parsed(raw))
    assert marks.recognise(raw)
    for changed_data in (
        data.replace(b"0.5", b"0.6", 1),
        data[: data.rindex(b"\n", 0, -1) + 1],
        data + b"z ||| z ||| 1 1\n",
    ):
        (changed,) = raws_of(tmp_path / "other", changed_data)
        assert marks.recognise(changed) is None
    # In a table whose first line has a different number of scores, the same lines are malformed.
    assert marks.recognise(replace(raw, scores=raw.scores + 1)) is None


def test_blocks_may_end_between_any_sources(tmp_path):
    """Marks of small blocks lack relations across blocks, so that a larger block is parsed again."""
    data = TABLES["seven fields"]
    parts = [LineMarks.of(raw, parsed(raw)) for raw in raws_of(tmp_path / "t", data, 300)]
    (raw,) = raws_of(tmp_path / "t", data)
    assert len(parts) > 1
    assert LineMarks(*map(np.concatenate, zip(*parts, strict=True))).recognise(raw) is None
    whole = LineMarks.of(raw, parsed(raw))
    first = 0
    for piece in raws_of(tmp_path / "t", data, 300):
        rows = slice(first, first + piece.lines)
        result, block = LineMarks(*(column[rows] for column in whole)).recognise(piece), parsed(piece)
        assert result.group_offsets.tolist() == block.group_offsets.tolist()
        assert result.source_lengths.tolist() == block.source_lengths.tolist()
        first += piece.lines


def test_sources_of_too_many_or_no_words_are_parsed_again(tmp_path):
    long = b" ".join([b"w"] * 40_000)
    for data, known in ((b"w w ||| x ||| 1\n", True), (long + b" ||| x ||| 1\n", False), (b" ||| x ||| 1\n", False)):
        (raw,) = raws_of(tmp_path / "t", data)
        assert (LineMarks.of(raw, parsed(raw)).recognise(raw) is not None) == known
