import gzip
import os

import pytest

from tests import naive, naive_reordering
from tests.commands import read, run_inside, run_outside, write
from tests.tables import TABLES

REORDERING = TABLES["reordering"]
# A pruned phrase table: every second pair of the reordering table.
SMALL = b"".join(b"|||".join(line.split(b"|||")[:2]) + b"||| 1 1\n" for line in naive.split_lines(REORDERING)[1::2])
EXPECTED = b"".join(naive.split_lines(REORDERING)[1::2])


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files(tmp_path, ending):
    table, reordering = write(tmp_path / f"t{ending}", SMALL), write(tmp_path / f"r{ending}", REORDERING)
    out = tmp_path / f"o{ending}"
    outcome = run_inside("remove-orphans", table, "--reordering-table", reordering, "-o", out)
    assert (outcome.code, outcome.out) == (0, b"")
    assert read(out) == EXPECTED
    kept, lines = EXPECTED.count(b"\n"), REORDERING.count(b"\n")
    assert outcome.err.splitlines() == [
        f"phrasetool: kept {kept} of {lines} reordering lines ({kept / lines:.1%})",
        f"phrasetool:   {lines - kept} were left out because the phrase table lacks their pair",
    ]
    assert run_inside("remove-orphans", table, "--reordering-table", reordering, "-q").out == EXPECTED


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_as_a_filter(tmp_path, pack):
    table = write(tmp_path / "t", SMALL)
    outcome = run_outside("remove-orphans", table, "-q", stdin=pack(REORDERING))
    assert (outcome.code, outcome.out, outcome.err) == (0, EXPECTED, "")


def test_the_phrase_table_from_a_pipe(tmp_path):
    reordering = write(tmp_path / "r", REORDERING)
    outcome = run_inside("remove-orphans", "-", "--reordering-table", reordering, "-q", stdin=SMALL)
    assert (outcome.code, outcome.out) == (0, EXPECTED)


def test_both_from_standard_input():
    outcome = run_inside("remove-orphans", "-", stdin=SMALL)
    assert outcome.code == 2
    assert "standard input" in outcome.err


def test_notes_and_warnings(tmp_path):
    table, reordering = write(tmp_path / "t", SMALL + b"nie ||| gesehen ||| 1 1\n"), REORDERING + b"das ||| the ||| 1\n"
    outcome = run_inside("remove-orphans", table, "--on-error", "skip", stdin=reordering)
    assert outcome.out == EXPECTED
    pairs = len(naive_reordering.pairs(SMALL)) + 1
    assert "1 malformed lines were left out" in outcome.err
    assert f"warning: 1 of {pairs} pairs of the phrase table have no reordering line" in outcome.err
    outcome = run_inside("remove-orphans", table, "--on-error", "keep", stdin=reordering[:-1])
    assert outcome.out == EXPECTED + b"das ||| the ||| 1\n"
    assert "1 malformed lines were passed through" in outcome.err
    assert "the last line had no line feed" in outcome.err


def test_empty_tables(tmp_path):
    table, empty = write(tmp_path / "t", SMALL), write(tmp_path / "e", b"")
    assert run_inside("remove-orphans", empty, "-q", "--allow-empty", stdin=REORDERING).out == b""
    command = ("remove-orphans", table, "--reordering-table", empty, "-o", tmp_path / "o.gz")
    assert "e: is empty; expected a reordering table" in run_inside(*command).message
    outcome = run_inside(*command, "--allow-empty")
    assert outcome.code == 0
    assert read(tmp_path / "o.gz") == b""
    assert "warning" in outcome.err


@pytest.mark.parametrize(
    ("table", "reordering", "message"),
    [
        (SMALL + b"das ||| the\n", REORDERING, "t:{}: expected at least 3 fields".format(SMALL.count(b"\n") + 1)),
        (SMALL, REORDERING + b"das ||| the ||| 1\n", "r:{}: expected 6 scores".format(REORDERING.count(b"\n") + 1)),
        (SMALL, b"das ||| 0.2 0.8\n", "r:1: expected source ||| target ||| probabilities"),
        (SMALL, gzip.compress(REORDERING)[:-30], "r: the gzip data end too early"),
    ],
)  # fmt: skip
def test_bad_input(tmp_path, table, reordering, message):
    write(tmp_path / "t", table)
    (tmp_path / "r").write_bytes(reordering)
    (tmp_path / "o").write_bytes(b"old")
    outcome = run_inside("remove-orphans", tmp_path / "t", "--reordering-table", tmp_path / "r", "-o", tmp_path / "o")
    assert (outcome.code, outcome.out) == (1, b"")
    assert outcome.message.startswith(f"phrasetool: {tmp_path}/{message}")
    assert (tmp_path / "o").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["o", "r", "t"]


@pytest.mark.parametrize("name", ["t", "r"])
def test_output_over_an_input(tmp_path, name):
    write(tmp_path / "t", SMALL)
    write(tmp_path / "r", REORDERING)
    outcome = run_inside("remove-orphans", tmp_path / "t", "--reordering-table", tmp_path / "r", "-o", tmp_path / name)
    assert outcome.code == 1
    assert "the output is the input" in outcome.message
    assert (tmp_path / "r").read_bytes() == REORDERING
    assert (tmp_path / "t").read_bytes() == SMALL


def test_the_limit_of_bytes_in_a_line(tmp_path):
    long = b"das ||| the house ||| 0.2 0.3 0.5\n"
    reordering, short = write(tmp_path / "r", b"das ||| the ||| 1 1 1\n" + long), b"das ||| the ||| 1 1\n"
    table = write(tmp_path / "t", short)
    files = ("remove-orphans", table, "--reordering-table", reordering, "-o", tmp_path / "o")
    assert run_inside(*files, "-q", "--max-line", len(long)).code == 0
    assert read(tmp_path / "o") == b"das ||| the ||| 1 1 1\n"
    outcome = run_inside(*files[:-1], tmp_path / "no", "--max-line", len(long) - 1)
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {reordering}:2: the line has more than {len(long) - 1} bytes")
    # The limit holds for the lines of the phrase table, too.
    write(reordering, b"das ||| the ||| 1 1 1\n")
    write(table, short + b"das ||| the house ||| 1 1 ||| 0-0\n")
    outcome = run_inside(*files[:-1], tmp_path / "no", "--max-line", 30)
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {table}:2: the line has more than 30 bytes")
    assert not (tmp_path / "no").exists()
