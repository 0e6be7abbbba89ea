"""Files of saved similarities, and folders of partial scores."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moses_compat.measures.saved_scores import SavedScores, ScoreParts, ScoreWriter, remove_parts
from moses_compat.measures.similarities import finishing, parts_folder
from moses_compat.tables.blocks import LineMarks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrase_encoder.scoring import Scores
from tests.tables import TABLES
from tests.variants import for_each

HASHES = np.array([5, 7, 9], np.uint32)
SCORES = np.array([-1.5, np.nan, -7], np.float32)


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    similarities = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
    marks = (rng.integers(0, 1 << np.iinfo(kind).bits, count, dtype=kind) for kind in (np.uint32, np.uint32, np.uint16))
    return LineMarks(*marks), Scores(similarities, rng.random(count) < 0.8)


def same_marks(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def part(marks, rows):
    return LineMarks(*(column[rows] for column in marks))


def write_rows(path, count, pieces=(), signature="model:x|n:3"):
    marks, scores = rows(count)
    with ScoreWriter(str(path), signature) as writer:
        borders = [0, *pieces, count]
        for a, b in pairwise(borders):
            writer.write(part(marks, slice(a, b)), Scores(scores.similarities[a:b], scores.scored[a:b]))
    return marks, scores


@pytest.mark.parametrize("taken", [[1000], [1, 2, 997], [0, 500, 0, 500], [300, 300, 300, 300]])
def test_round_trip(tmp_path, taken):
    marks, scores = write_rows(tmp_path / "s", 1000, (10, 10, 700))
    saved = SavedScores(str(tmp_path / "s"))
    assert saved.rows == 1000
    assert saved.signature == "model:x|n:3"
    row = 0
    for count in taken:
        read_marks, result = saved.take(count)
        size = min(count, 1000 - row)
        assert same_marks(read_marks, part(marks, slice(row, row + size)))
        np.testing.assert_array_equal(result.similarities, scores.similarities[row : row + size])
        np.testing.assert_array_equal(result.scored, scores.scored[row : row + size])
        row += size
    assert row == 1000


def test_no_rows(tmp_path):
    write_rows(tmp_path / "s", 0)
    saved = SavedScores(str(tmp_path / "s"))
    assert len(saved.take(5)[0].pairs) == 0
    saved.finish("t", 0)


def test_more_rows_than_a_batch(tmp_path):
    count = (1 << 18) + 1000
    marks, scores = write_rows(tmp_path / "s", count)
    saved = SavedScores(str(tmp_path / "s"))
    saved.take((1 << 18) - 10)
    read_marks, result = saved.take(1010)
    assert same_marks(read_marks, part(marks, slice(-1010, None)))
    np.testing.assert_array_equal(result.similarities, scores.similarities[-1010:])


def test_same_rows_same_bytes(tmp_path):
    write_rows(tmp_path / "a", 100)
    write_rows(tmp_path / "b", 100)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "s"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), ScoreWriter(str(path), "x") as writer:  # noqa: PT012
        writer.write(*rows(10))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["s"]


def test_missing_folder(tmp_path):
    with pytest.raises(PhraseToolError, match="no/s: cannot write"):
        ScoreWriter(str(tmp_path / "no" / "s"), "x")


def block_of(data):
    return TableParser(fingerprints=True)(40, np.frombuffer(data, np.uint8))[0]


def marks_of(hashes):
    return LineMarks(hashes, np.zeros_like(hashes), np.zeros(len(hashes), np.uint16))


def test_check():
    block = block_of(TABLES["lattice"])
    saved = SavedScores.__new__(SavedScores)
    saved.path, saved.rows = "scores", 3
    saved.check("table", block, marks_of(block.fingerprints))
    with pytest.raises(DataError, match=r"^table:43: scores holds no similarity"):
        saved.check("table", block, marks_of(block.fingerprints[:2]))
    wrong = block.fingerprints.copy()
    wrong[1] += 1
    with pytest.raises(DataError, match=r"^table:42: scores holds no similarity"):
        saved.check("table", block, marks_of(wrong))
    saved.finish("table", 3)
    with pytest.raises(DataError, match=r"^scores: has 3 rows, but table has 2 entries$"):
        saved.finish("table", 2)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"das ||| the ||| 0.5\n" * 50, b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_not_parquet(tmp_path, data):
    path = tmp_path / "s"
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"^{path}: "):
        SavedScores(str(path))


def test_folder_instead_of_a_file(tmp_path):
    with pytest.raises(DataError, match=rf"^{tmp_path}: "):
        SavedScores(str(tmp_path))


@pytest.mark.parametrize("metadata", [{}, {"phrasetool_schema": "1"}, {"phrasetool_schema": "999"}])
def test_other_parquet(tmp_path, metadata):
    path = str(tmp_path / "s")
    table = pa.table({"a": [1, 2]}).replace_schema_metadata(metadata)
    pq.write_table(table, path)
    with pytest.raises(DataError, match="not a file of saved similarities"):
        SavedScores(path)


def test_damage_anywhere_is_a_data_error(tmp_path):
    path = tmp_path / "s"
    write_rows(path, 2000)
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 100):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=rf"^{path}: "):
            SavedScores(str(path))
    path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    with pytest.raises(DataError, match=rf"^{path}: "):
        SavedScores(str(path)).take(2000)


def _as_other_types(path, **kinds):
    """Rewrite a file with columns of other types, or without them."""
    table = pq.read_table(path)
    for name, kind in kinds.items():
        i = table.schema.get_field_index(name)
        table = table.set_column(i, name, table[name].cast(kind)) if kind else table.drop_columns([name])
    pq.write_table(table, path)


@pytest.mark.parametrize(
    "kinds",
    [
        {"similarity_st": pa.float64()}, {"scored": pa.int64()}, {"pair_hash": pa.int64()}, {"similarity_ts": None},
        {"line_hash": None}, {"source_words": pa.uint32()},
        {"similarity_st": pa.string()}, {"scored": pa.bool_()},
    ],
)  # fmt: skip
def test_other_columns_are_refused(tmp_path, kinds):
    path = str(tmp_path / "s")
    write_rows(path, 10)
    _as_other_types(path, **kinds)
    with pytest.raises(
        DataError,
        match=r"has columns .*expected pair_hash uint32, line_hash uint32, source_words uint16, similarity_st float",
    ):
        SavedScores(path)


def test_missing_values_are_refused(tmp_path):
    path = str(tmp_path / "s")
    write_rows(path, 10)
    table = pq.read_table(path)
    st = pa.array([None, *table["similarity_st"].to_pylist()[1:]], pa.float32())
    pq.write_table(table.set_column(3, "similarity_st", st), path)
    with pytest.raises(DataError, match="values are missing"):
        SavedScores(path).take(10)


def test_a_flipped_bit_never_changes_a_value(tmp_path):
    """A file with a flipped bit is refused, or its values are those that were written."""
    path = tmp_path / "s"
    marks, scores = write_rows(path, 500)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for bit in rng.choice(8 * len(whole), 400, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            saved = SavedScores(str(path))
            read_marks, result = saved.take(500)
            saved.finish("t", 500)
        except DataError:
            refused += 1
            continue
        assert same_marks(read_marks, marks)
        np.testing.assert_array_equal(result.similarities, scores.similarities)
        np.testing.assert_array_equal(result.scored, scores.scored)
    assert refused > 300


def test_rows_that_were_read_are_freed(tmp_path):
    """Of 200,000 rows (3.8 MB), only those of the last pieces are in memory."""
    write_rows(tmp_path / "s", 200_000, range(10_000, 200_000, 10_000))
    saved, before = SavedScores(str(tmp_path / "s")), pa.total_allocated_bytes()
    while len(saved.take(7_000)[0].pairs):
        assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "ParquetWriter", full)
    with pytest.raises(PhraseToolError, match="cannot write: the disk is full"):
        ScoreWriter(str(tmp_path / "s"), "model")
    assert not os.listdir(tmp_path)


def test_written_parts_are_read(tmp_path):
    parts = ScoreParts(str(tmp_path / "p"), "a")
    assert parts.read(3, HASHES) is None
    parts.write(3, HASHES, SCORES)
    assert np.array_equal(parts.read(3, HASHES), SCORES, equal_nan=True)
    assert parts.read(2, HASHES) is None
    remove_parts([str(tmp_path / "p")])
    assert not (tmp_path / "p").exists()


def test_parts_of_another_table_or_model_are_refused(tmp_path):
    folder = str(tmp_path / "p")
    ScoreParts(folder, "a").write(0, HASHES, SCORES)
    with pytest.raises(DataError, match=r"p: holds scores of another table; delete the folder"):
        ScoreParts(folder, "a").read(0, HASHES + np.uint32(1))
    with pytest.raises(DataError, match="another table"):
        ScoreParts(folder, "a").read(0, HASHES[:2])
    with pytest.raises(DataError, match="another model"):
        ScoreParts(folder, "b").read(0, HASHES)
    (tmp_path / "p" / "part-000000.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="damaged"):
        ScoreParts(folder, "a").read(0, HASHES)


def test_a_full_disk_is_reported_and_existing_parts_remain(tmp_path, monkeypatch):
    parts = ScoreParts(str(tmp_path / "p"), "a")
    parts.write(0, HASHES, SCORES)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PhraseToolError, match="p: cannot write: the disk is full"):
        parts.write(1, HASHES, SCORES)
    assert os.listdir(tmp_path / "p") == ["part-000000.parquet"]


def test_a_folder_with_other_files_is_not_removed(tmp_path):
    (tmp_path / "mine").write_text("x")
    remove_parts([str(tmp_path)])
    assert (tmp_path / "mine").exists()


def test_folders_of_parts(tmp_path):
    assert parts_folder(str(tmp_path / "out"), 2) == str(tmp_path / "out") + ".scores-2"
    assert parts_folder("-", 1) is None
    assert parts_folder(os.devnull, 1) is None


def test_parts_remain_after_a_failure(tmp_path):
    folder = tmp_path / "o.scores-1"
    folder.mkdir()
    (folder / "part-000000.parquet").write_bytes(b"")
    with pytest.raises(KeyError), finishing([None, str(folder)]):
        raise KeyError
    assert folder.exists()
    with finishing([None, str(folder), str(tmp_path / "none")]):
        assert folder.exists()
    assert not folder.exists()


@for_each("column", ["similarity_st", "similarity_ts"])
@for_each(("value", "refused"), [(1.001, True), (-1.001, True), (np.nan, True), (np.inf, True), (-1.0, False)])
def test_similarities_lie_between_minus_one_and_one(tmp_path, column, value, refused):
    """The error names the row in the whole file, not in the piece that is read."""
    path = tmp_path / "s"
    write_rows(path, 30)
    table = pq.read_table(path)
    values = table[column].to_numpy().copy()
    values[17] = value
    index = table.schema.get_field_index(column)
    pq.write_table(table.set_column(index, table.schema.field(index), pa.array(values)), path)
    saved = SavedScores(str(path))
    saved.take(12)
    if refused:
        with pytest.raises(
            DataError, match=r"s: the file is damaged \(the similarities of row 18 are not from -1 to 1\)"
        ):
            saved.take(18)
    else:
        assert saved.take(18)[1].similarities.min() == value
