"""`phrasetool convert`."""

import gzip

import pyarrow.parquet as pq
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.tables.parquet import is_parquet, table_to_parquet
from phrasetool.errors import DataError
from tests import naive
from tests.commands import run_inside, write
from tests.tables import TABLES


def convert(*arguments):
    return run_inside("convert", *arguments, "-q")


def test_directions_and_names(tmp_path, model_folder):
    table = write(tmp_path / "t.gz", TABLES["model 1"])
    assert "is not Parquet" in convert(table, "-o", tmp_path / "u.gz").message
    assert convert(table, "-o", tmp_path / "t.parquet").code == 0
    assert is_parquet(str(tmp_path / "t.parquet"))
    assert not is_parquet(str(table))
    assert "Parquet already" in convert(tmp_path / "t.parquet", "-o", tmp_path / "u.parquet").message
    assert "the output is the input" in convert(table, "-o", table).message
    assert convert(tmp_path / "t.parquet", "-o", "-").out == TABLES["model 1"]
    piped = run_inside("convert", "-", "-o", "-", "-q", stdin=gzip.compress(TABLES["model 1"])).out
    assert piped == (tmp_path / "t.parquet").read_bytes()
    outcome = run_inside("annotate", tmp_path / "t.parquet", "-m", model_folder, "-q", "-o", "-")
    assert "phrasetool convert" in outcome.message
    with pytest.raises(DataError, match="Parquet"), Input(str(tmp_path / "t.parquet")) as source, Output("-") as output:
        table_to_parquet(source, output)


def test_threads_change_nothing(tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"] * 40)
    for threads in (1, 2):
        convert(table, "-o", tmp_path / f"{threads}.parquet", "--threads", threads)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize("name", ["seven fields", "numbers in other forms", "twelve columns", "empty"])
def test_messages(tmp_path, name):
    table = write(tmp_path / "t", TABLES[name])
    packed = tmp_path / "t.parquet"
    recorded = []
    for arguments in ((table, "-o", packed), (packed, "-o", tmp_path / "back")):
        outcome = run_inside("convert", *arguments)
        assert (outcome.code, outcome.out) == (0, b"")
        recorded.append(outcome.err.splitlines()[-1])
    assert (tmp_path / "back").read_bytes() == TABLES[name]
    assert recorded[0] == recorded[1]
    rows = pq.read_table(packed, columns=["raw"])["raw"]
    whole = len(rows) - rows.null_count
    columns = naive.first_score_count(TABLES[name])
    expected = f"converted {TABLES[name].count(bytes([10])):,} entries of {max(columns, 0)} scores"
    assert recorded[0] == f"phrasetool: {expected}" + (f"; {whole:,} lines kept whole" if whole else "")


@pytest.mark.parametrize("arguments", [(), ("t",), ("t", "u", "-o", "v"), ("t", "-o", "v", "--threads", "-1")])
def test_bad_usage(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    assert run_inside("convert", *arguments).code == 2


def test_a_failure_leaves_the_old_file(tmp_path):
    table = write(tmp_path / "t.gz", TABLES["model 1"])
    table.write_bytes(table.read_bytes()[:-9])
    old = write(tmp_path / "t.parquet", b"old")
    outcome = convert(table, "-o", old)
    assert outcome.code == 1
    assert "the gzip data end too early" in outcome.message
    assert old.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.gz", "t.parquet"]
