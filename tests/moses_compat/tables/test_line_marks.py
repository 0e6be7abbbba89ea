"""Lines that were read before are known again, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.tables.blocks import RawBlock, raw_blocks
from moses_compat.tables.line_marks import LineMarks, hash_lines
from moses_compat.tables.parser import TableParser
from tests.commands import write
from tests.tables import FAULTY, TABLES

GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(h, value):
    h = ((h ^ (value & MASK)) * GOLDEN) & MASK
    return h ^ (h >> 29)


def naive_hash(line, seed):
    """Eight bytes at a time into two hashes in turn."""
    one, other = mix(GOLDEN, len(line)), mix(GOLDEN, seed)
    if len(line) < 8:
        for byte in line:
            one = mix(one, byte)
    else:
        for k in range(0, len(line) - 7, 8):
            word = int.from_bytes(line[k : k + 8], "little")
            one, other = (mix(one, word), other) if k % 16 == 0 else (one, mix(other, word))
        other = mix(other, int.from_bytes(line[-8:], "little"))
    return max(mix(one, other) >> 32, 1)


def raws_of(path, data, size=1 << 20, whole_groups=True):
    with Input(str(write(path, data))) as source:
        return list(raw_blocks(source, size, whole_groups=whole_groups))


def parsed(raw):
    return TableParser(scores=raw.scores, fingerprints=True)(raw.first_entry, raw.text, raw.line_offsets)[0]


def is_known(block):
    """What is to be known again."""
    return bool(len(block) and block.ascending and not block.faulty.any() and block.source_lengths.all())


def raw_of(lines, scores=1):
    text = np.frombuffer(b"".join(lines), np.uint8)
    return RawBlock(0, np.cumsum([0, *map(len, lines)]), text, scores, 0)


@given(st.lists(st.binary(max_size=70), min_size=1), st.integers(-1, 9))
def test_hashes(lines, scores):
    assert hash_lines(raw_of(lines, scores)).tolist() == [naive_hash(line, scores) for line in lines]


@given(st.binary(min_size=1, max_size=70), st.data())
def test_a_byte_more_less_or_changed_is_another_hash(line, data):
    place = data.draw(st.integers(0, len(line) - 1))
    changed = bytes([*line[:place], line[place] ^ data.draw(st.integers(1, 255)), *line[place + 1 :]])
    others = [
        changed,
        line[:place] + line[place + 1 :],
        line[:place] + b"\0" + line[place:],
        line + b"\0",
        b"\0" + line,
    ]
    hashes = hash_lines(raw_of([line, *others])).tolist()
    assert hashes[0] not in hashes[1:]


@pytest.mark.parametrize("name", [*TABLES, "faulty"])
def test_blocks_that_are_known_again_are_those_that_were_read(tmp_path, name):
    data = FAULTY if name == "faulty" else TABLES[name]
    ways = [(size, whole_groups) for size in (1, 300, 1 << 20) for whole_groups in (True, False)]
    for raw in (raw for way in ways for raw in raws_of(tmp_path / "t", data, *way)):
        block = parsed(raw)
        found = LineMarks.of(raw, block).recognise(raw)
        assert (found is not None) == (is_known(block) and not raw.continued)
        if found:
            assert found.group_offsets.tolist() == block.group_offsets.tolist()
            assert found.source_lengths.tolist() == block.source_lengths.tolist()
            assert found.ascending
            assert not found.faulty.any()
            assert (found.first_entry, found.text.tobytes()) == (raw.first_entry, raw.text.tobytes())


def test_other_lines_are_not_known(tmp_path):
    data = TABLES["lexicalised"]
    (raw,) = raws_of(tmp_path / "t", data)
    marks = LineMarks.of(raw, parsed(raw))
    assert marks.recognise(raw)
    for other in (data.replace(b"0.5", b"0.6", 1), data[: data.rindex(b"\n", 0, -1) + 1], data + b"z ||| z ||| 1 1\n"):
        (changed,) = raws_of(tmp_path / "other", other)
        assert marks.recognise(changed) is None
    # As many scores as its lines have are wrong in a table that begins otherwise.
    assert marks.recognise(replace(raw, scores=raw.scores + 1)) is None


def test_where_blocks_end_is_no_matter_between_sources(tmp_path):
    """Marks of small blocks say less of neighbours: what is not known is read again."""
    data = TABLES["seven fields"]
    parts = [LineMarks.of(raw, parsed(raw)) for raw in raws_of(tmp_path / "t", data, 300)]
    (raw,) = raws_of(tmp_path / "t", data)
    assert len(parts) > 1
    assert LineMarks(*map(np.concatenate, zip(*parts, strict=True))).recognise(raw) is None
    whole = LineMarks.of(raw, parsed(raw))
    done = 0
    for piece in raws_of(tmp_path / "t", data, 300):
        rows = slice(done, done + piece.lines)
        found, block = LineMarks(*(column[rows] for column in whole)).recognise(piece), parsed(piece)
        assert found.group_offsets.tolist() == block.group_offsets.tolist()
        assert found.source_lengths.tolist() == block.source_lengths.tolist()
        done += piece.lines


def test_a_source_of_more_words_than_are_counted_is_read_again(tmp_path):
    long = b" ".join([b"w"] * 40_000)
    for data, known in ((b"w w ||| x ||| 1\n", True), (long + b" ||| x ||| 1\n", False), (b" ||| x ||| 1\n", False)):
        (raw,) = raws_of(tmp_path / "t", data)
        assert (LineMarks.of(raw, parsed(raw)).recognise(raw) is not None) == known
