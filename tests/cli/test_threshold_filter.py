"""`phrasetool threshold-filter`."""

import pytest

from tests.cli.test_filter_pt import LINES, TABLE
from tests.commands import read, run_inside, write


def test_threshold_filter(tmp_path):
    table = write(tmp_path / "table.gz", TABLE)
    outcome = run_inside("threshold-filter", "0.2", stdin=TABLE)
    assert (outcome.code, outcome.out) == (0, b"".join(LINES[1:]))
    assert outcome.err == "phrasetool: kept 4 of 5 entries (80.0%)\n"
    assert run_inside("threshold-filter", "2:0.9", "-q", table).out == LINES[4]
    outcome = run_inside("threshold-filter", "2:0.9", "--keep-words", table, "-o", tmp_path / "out.gz")
    assert read(tmp_path / "out.gz") == LINES[1] + LINES[2] + LINES[4]
    assert "2 kept as the last entry of their word" in outcome.err


@pytest.mark.parametrize("spec", ["x", "0", "1:", "0:0"])
def test_threshold_filter_refuses_a_wrong_spec(spec):
    assert run_inside("threshold-filter", spec, stdin=TABLE).code == 2


def test_threshold_filter_names_a_missing_column():
    outcome = run_inside("threshold-filter", "7:0.1", stdin=TABLE)
    assert outcome.code == 1
    assert outcome.message.endswith("standard input:1: column 7 (from 0) was requested, but entries have 4 scores")


def test_a_word_keeps_its_best_entry_below_a_negative_threshold():
    table = b"a ||| bad ||| 0.5 -0.9\na ||| good ||| 0.5 -0.6\nb ||| z ||| 0.5 0.3\n"
    outcome = run_inside("threshold-filter", "1:-0.5", "--keep-words", "-q", stdin=table)
    assert outcome.out == table.partition(b"\n")[2]
