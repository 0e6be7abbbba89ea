"""`phrasetool convert`."""

import gzip

import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.tables.parquet import is_parquet, table_to_parquet
from phrasetool.errors import DataError
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
    done = run_inside("annotate", tmp_path / "t.parquet", "-m", model_folder, "-q", "-o", "-")
    assert "phrasetool convert" in done.message
    with pytest.raises(DataError, match="Parquet"), Input(str(tmp_path / "t.parquet")) as source, Output("-") as output:
        table_to_parquet(source, output)


def test_threads_change_nothing(tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"] * 40)
    for threads in (1, 2):
        convert(table, "-o", tmp_path / f"{threads}.parquet", "--threads", threads)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
