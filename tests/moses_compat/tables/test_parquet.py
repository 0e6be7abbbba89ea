"""Conversion of tables to Parquet and back, byte for byte: columns, files and refusals."""

import gzip
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.files.streams import Input, Output
from moses_compat.lines.fields import gather
from moses_compat.tables.parquet import parquet_to_table, table_to_parquet
from moses_compat.tables.rows import COUNTS, RAW, SCORES, SOURCE, TAIL, TARGET, read_rows, write_rows
from tests import naive
from tests.commands import read, run_inside, write
from tests.pairwise import in_turn
from tests.tables import MALFORMED, TABLES
from tests.test_promise import tables_with_oddities
from tests.variants import for_each

fields = st.sampled_from(
    [b"", b" ", b"x", b" x ", b" x y ", b"\tx ", b" 0-0 ", b" 1 2 3 ", b" 5.25e-24 ", b" 1.50 ", b"\r"]
)


line_lists = st.lists(st.lists(fields, max_size=10).map(b"|||".join), max_size=6)


def convert(*arguments):
    return run_inside("convert", *arguments, "-q")


def round_trip(source, folder, threads=1, block_bytes=1 << 23):
    packed, back = str(folder / "packed.parquet"), str(folder / "back")
    with Input(str(source)) as table, Output(packed) as output:
        counts = table_to_parquet(table, output, threads=threads, block_bytes=block_bytes)
    with Output(back) as output:
        again = parquet_to_table(packed, output, threads=threads)
    assert counts == again
    return (folder / "back").read_bytes()


@for_each(("name", "ways"), in_turn(sorted(TABLES), [(1, 1 << 23), (2, 512), (2, 1)], 2))
def test_round_trip(name, tmp_path, ways):
    for file, arguments in zip(("t", "t.gz"), ways, strict=True):
        assert round_trip(write(tmp_path / file, TABLES[name]), tmp_path, *arguments) == TABLES[name]


@settings(max_examples=60)
@given(tables_with_oddities(), st.sampled_from([1, 100, 1 << 21]))
@example(MALFORMED, 1 << 21)
@example(b"no entry\n\nat all", 1)
def test_round_trip_of_random_tables(workspace, table, size):
    assert round_trip(write(workspace / "convert-in", table), workspace, 2, size) == table


def test_columns_of_a_modern_table(tmp_path):
    table = TABLES["seven fields"].replace(b"gr\xfcn", b"gr\xc3\xbcn")
    assert convert(write(tmp_path / "t.gz", table), "-o", tmp_path / "t.parquet").code == 0
    frame = pq.read_table(tmp_path / "t.parquet")
    assert frame.column_names == [
        "source", "target", "score_1", "score_2", "score_3", "score_4", "alignment",
        "count_target", "count_source", "count_joint", "sparse", "properties", "extra",
        "scores_text", "counts_text", "tail", "raw",
    ]  # fmt: skip
    for row, line in zip(frame.to_pylist(), table.decode().splitlines(), strict=True):
        parts = line.split("|||")
        texts = [row[name] for name in ("source", "target", "alignment")]
        assert texts == [parts[k].strip() for k in (0, 1, 3)]
        assert [row[f"score_{i}"] for i in range(1, 5)] == [float(np.float32(x)) for x in parts[2].split()]
        assert [row[f"count_{name}"] for name in ("target", "source", "joint")] == [float(x) for x in parts[4].split()]
        assert (row["sparse"], row["properties"]) == ("", "")
        assert all(row[name] is None for name in ("extra", "scores_text", "counts_text", "tail", "raw"))
    metadata = pq.read_schema(tmp_path / "t.parquet").metadata
    assert metadata[b"phrasetool_table"] == b"1"
    assert metadata[b"created_by"].startswith(b"phrasetool ")


def test_bytes_that_are_not_utf8(tmp_path):
    table = b"gr\xfcn ||| green ||| 0.5\nblau ||| blue ||| 0.5\n\xff\xfe ||| \xe2\x82 ||| 1\n"
    assert round_trip(write(tmp_path / "t", table), tmp_path) == table
    rows = pq.read_table(tmp_path / "packed.parquet").to_pylist()
    assert [row["source"] for row in rows] == ["gr?n", "blau", "??"]
    assert [row["raw"] for row in rows] == [table.splitlines(True)[0], None, table.splitlines(True)[2]]


def test_rows_may_be_changed_by_other_programs(tmp_path):
    table = TABLES["model 1"].replace(b"gr\xfcn", b"gr\xc3\xbcn")
    convert(write(tmp_path / "t", table), "-o", tmp_path / "t.parquet")
    frame = pq.read_table(tmp_path / "t.parquet")
    # Other types and row groups, no optional columns, an additional score, and an index column.
    changed = frame.filter(pa.compute.greater(frame["score_3"], 0.1)).drop_columns(["extra", "tail", "raw"])
    changed = changed.set_column(0, "source", changed["source"].cast(pa.large_string()).dictionary_encode())
    changed = changed.append_column("score_5", pa.array([0.25] * len(changed)))
    changed = changed.append_column("__index_level_0__", pa.array(range(len(changed))))
    pq.write_table(changed, tmp_path / "u.parquet", row_group_size=7)
    assert convert(tmp_path / "u.parquet", "-o", tmp_path / "u.gz").code == 0
    lines = [line.split(b" ||| ") for line in naive.split_lines(table)]
    kept = [[*line[:2], line[2] + b" 0.25", *line[3:]] for line in lines if float(line[2].split()[2]) > 0.1]
    assert read(tmp_path / "u.gz") == b"".join(map(b" ||| ".join, kept))


def test_an_empty_table(tmp_path):
    assert round_trip(write(tmp_path / "t.gz", b""), tmp_path) == b""


def test_damaged_and_foreign_files(tmp_path):
    convert(write(tmp_path / "t", TABLES["model 1"]), "-o", tmp_path / "t.parquet")
    frame = pq.read_table(tmp_path / "t.parquet")
    good = (tmp_path / "t.parquet").read_bytes()
    cases = {
        "cut": (good[:3000], "cannot be read"),
        "garbled": (good[:200] + bytes(800) + good[1000:], "cannot be read"),
    }
    tables = {
        "foreign": (pa.table({"x": [1]}), "has no column score_1|has no column source"),
        "scores missing": (frame.drop_columns(["score_2"]), "has no column score_2"),
        "a column twice": (frame.append_column("score_1", frame["score_1"]), "has two columns score_1"),
        "unknown column": (frame.append_column("similarity", frame["score_1"]), "has no column similarity"),
        "wrong type": (frame.set_column(0, "source", pa.array([[1]] * len(frame))), "cannot be read"),
        "null": (frame.set_column(2, "score_1", pa.array([None] * len(frame), pa.float32())), "row 1 lacks"),
        "lines": (frame.set_column(1, "target", pa.array(["a\nb"] * len(frame))).drop_columns(["raw"]), "line feed"),
        "bars": (frame.set_column(1, "target", pa.array(["a ||| b"] * len(frame))).drop_columns(["raw"]), "fields"),
    }
    for name, (data, _) in cases.items():
        (tmp_path / name).write_bytes(data)
    for name, (table, _) in tables.items():
        pq.write_table(table, tmp_path / name)
    for name, (_, words) in {**cases, **tables}.items():
        outcome = convert(tmp_path / name, "-o", tmp_path / "out")
        assert outcome.code == 1, name
        assert any(word in outcome.message for word in words.split("|")), outcome.message
        assert str(tmp_path / name) in outcome.message
        assert not (tmp_path / "out").exists()


@pytest.mark.requires_reference
def test_the_reference_table(reference, tmp_path):
    with gzip.open(reference / "phrase-table.gz") as file:
        table = b"".join(file.readline() for _ in range(50_000))
    assert round_trip(write(tmp_path / "t", table), tmp_path, 2, 1 << 20) == table
    rows = pq.read_table(tmp_path / "packed.parquet", columns=["raw", "scores_text", "counts_text"])
    assert all(rows[name].null_count == len(rows) for name in rows.column_names)


def test_changed_numbers_replace_their_texts(tmp_path):
    """The text of %.7f scores and of counts with a point is kept, unless a number is new or changed."""
    table = tmp_path / "table"
    table.write_bytes(
        b"a ||| x ||| 0.5000000 0.25 ||| 0-0 ||| 10.0 10 5\nb ||| y ||| 0.5 1e-05 ||| 0-0 ||| 10 10 5\n"
        b"c ||| z ||| 0.3333333 0.5 ||| 0-0 ||| 9.0 9 4\n"
    )
    assert convert(table, "-o", tmp_path / "t.parquet").code == 0
    frame = pq.read_table(tmp_path / "t.parquet")
    more = frame.append_column("score_3", pa.array([0.1] * 3, pa.float32()))
    more = more.set_column(more.schema.get_field_index("count_joint"), "count_joint", pa.array([7.0, 5.0, 4.0]))
    pq.write_table(more, tmp_path / "more.parquet")
    assert convert(tmp_path / "more.parquet", "-o", tmp_path / "more").code == 0
    assert (tmp_path / "more").read_bytes() == (
        b"a ||| x ||| 0.5 0.25 0.1 ||| 0-0 ||| 10 10 7\nb ||| y ||| 0.5 1e-05 0.1 ||| 0-0 ||| 10 10 5\n"
        b"c ||| z ||| 0.333333 0.5 0.1 ||| 0-0 ||| 9.0 9 4\n"
    )


def test_a_changed_row_whose_line_is_kept_is_refused(tmp_path):
    table = tmp_path / "table"
    table.write_bytes(b"  a ||| x ||| 0.5 0.25\nb ||| y ||| 0.5 0.5\n")
    assert convert(table, "-o", tmp_path / "t.parquet").code == 0
    frame = pq.read_table(tmp_path / "t.parquet")
    changed = frame.set_column(1, "target", pa.array(["q", "y"]))
    pq.write_table(changed, tmp_path / "changed.parquet")
    outcome = convert(tmp_path / "changed.parquet", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "row 1 was changed, but its line is in the column `raw`, too" in outcome.err
    assert not (tmp_path / "out").exists()


@settings(max_examples=300)
@given(line_lists, st.integers(0, 3), st.sampled_from([b"", b"\n"]))
def test_any_lines_are_rows_and_back(lines, scores, end):
    text = b"\n".join(lines) + end
    if not text:
        return
    rows = read_rows(np.frombuffer(text, np.uint8), scores)
    written, fault = write_rows(rows)
    assert (written.tobytes(), fault) == (text, -1)


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        (b"a ||| b ||| 0.5 0.25\n", ()),
        (b"a ||| b ||| 0.5 0.25 ||| 0-0 ||| 3 2 1 ||| |||\n", ()),
        (b"a |||  ||| 0.5 0.25 ||| |||\n", (COUNTS,)),
        (b"a ||| b ||| 0.50 0.25\n", (SCORES,)),
        (b"a ||| b ||| 0.5 1e-44\n", (SCORES,)),
        (b"a ||| b ||| 0.5\n", (SCORES,)),
        (b"a ||| b ||| 0.5  0.25\n", (SCORES,)),
        (b"a ||| b ||| 0.5 0.25 ||| 0-0 ||| 3 2 1 7\n", (COUNTS,)),
        (b"a ||| b ||| 0.5 0.25 \r\n", (TAIL,)),
        (b"a ||| b ||| 0.5 0.25 ||| \n", (TAIL,)),
        (b"a ||| b ||| 0.5 0.25", (RAW,)),
        (b"a  ||| b ||| 0.5 0.25\n", (RAW,)),
        (b"a |||b ||| 0.5 0.25\n", (RAW,)),
        (b"a ||| b ||| 0.5 0.25 |||  |||\n", (COUNTS, RAW)),
        (b"a ||| \xff ||| 0.5 0.25\n", (RAW,)),
        (b"a ||| b\n", (RAW,)),
        (b"\n", (RAW,)),
    ],
    ids=str,
)
def test_texts_that_are_kept_with_the_numbers(line, texts):
    rows = read_rows(np.frombuffer(line, np.uint8), 2)
    result = [text for text in (SCORES, COUNTS, TAIL, RAW) if rows.starts[0, text] >= 0]
    assert sorted({*result} - {SCORES} if RAW in texts else result) == sorted(texts)
    assert write_rows(rows)[0].tobytes() == line


def test_source_and_target_texts_are_whole_fields():
    rows = read_rows(np.frombuffer(b"  a  b |||\tc ||| 1\n", np.uint8), 1)
    assert [rows.text[rows.starts[0, k] : rows.ends[0, k]].tobytes() for k in (SOURCE, TARGET)] == [b"a  b", b"c"]


@given(line_lists.filter(len), st.integers(0, 3))
def test_texts_are_the_fields_of_lines(lines, scores):
    text = b"".join(line + b"\n" for line in lines)
    rows = read_rows(np.frombuffer(text, np.uint8), scores)
    for row, line in enumerate(lines):
        parts = [part.strip(b" \t") for part in line.removesuffix(b"\r").split(b"|||", 7)]
        for field in (SOURCE, TARGET):
            start, end = rows.starts[row, field], rows.ends[row, field]
            result = rows.text[start:end].tobytes() if start >= 0 else None
            assert result == (parts[field] if field < len(parts) else None)
        numbers = naive.tokens(parts[2]) if len(parts) > 2 else []
        if len(numbers) == scores and all(naive.number_fault(number) == "ok" for number in numbers):
            assert rows.score_there[row].all()
            np.testing.assert_array_equal(rows.scores[row], np.array(list(map(float, numbers)), np.float32))
        else:
            assert not rows.score_there[row].any()


@given(st.lists(st.binary(max_size=6), max_size=8), st.randoms(use_true_random=False))
def test_gathered_texts_are_contiguous(texts, rng):
    text = b"".join(texts)
    ends = np.cumsum([len(part) for part in texts], dtype=np.int64)
    ranges = [(int(end) - len(part), int(end)) for part, end in zip(texts, ends, strict=True)] + [(-1, -1)]
    rng.shuffle(ranges)
    starts, ends = np.array(ranges, np.int64).T
    out, offsets = gather(np.frombuffer(text, np.uint8), starts, ends)
    expected = [text[a:b] if a >= 0 else b"" for a, b in ranges]
    assert [out[a:b].tobytes() for a, b in pairwise(offsets)] == expected
    assert len(out) == offsets[-1]


def test_a_row_without_a_score_ends_the_text():
    rows = read_rows(np.frombuffer(b"a ||| b ||| 1\nc ||| d ||| 0.5\ne ||| f ||| 1\n", np.uint8), 1)
    rows.score_there[1] = False
    written, fault = write_rows(rows)
    assert (written[: len(b"a ||| b ||| 1\n")].tobytes(), fault) == (b"a ||| b ||| 1\n", 1)
