"""threshold-filter against its naive version, on tables of all shapes."""

import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.threshold_filter import parse_thresholds, threshold_table
from moses_compat.tables.blocks import TableScan
from tests import naive, naive_filter
from tests.commands import read, write
from tests.pairwise import pairwise
from tests.tables import TABLES


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [("0.0001", {0: 0.0001, 2: 0.0001}), (".5", {0: 0.5, 2: 0.5}), ("2:0.0001", {2: 0.0001}),
     ("1:1e-3,0:2", {0: 2, 1: 0.001})],
)  # fmt: skip
def test_threshold_specs(text, thresholds):
    assert parse_thresholds(text) == thresholds


@pytest.mark.parametrize("text", ["", "0", "2:", "2:0", "x:1", "2:1,", "2:1,2:2", "2:nan", "-1:1", "1e-4", "0:inf"])
def test_wrong_threshold_specs(text):
    with pytest.raises(ValueError):
        parse_thresholds(text)


COMBINATIONS = pairwise(
    sorted(TABLES), [(0.3,), (1e-4, 0.5), (2.0,)], [False, True], [{}, {"threads": 2, "block_bytes": 1}]
)


@pytest.mark.parametrize(("name", "limits", "keep_words", "scan"), COMBINATIONS)
def test_threshold_equals_the_naive_filter(tmp_path, name, limits, keep_words, scan):
    table = TABLES[name]
    thresholds = dict(enumerate(limits[: max(naive.first_score_count(table), 1)]))
    path, out = write(tmp_path / "table", table), tmp_path / "out.gz"
    with Input(str(path)) as source, Output(str(out)) as output:
        counts = threshold_table(source, output, thresholds, TableScan(**scan), keep_words=keep_words)
    expected = naive_filter.threshold_lines(table, thresholds, keep_words)
    assert read(out) == expected
    assert counts.kept == len(naive.split_lines(expected))


def test_a_score_equal_to_its_threshold_stays(tmp_path):
    numbers = ["0.1", "0.3", "0.35", "0.7", "0.0001", "5.25e-24", "1.63446e-06", "0.0133333", "123456", "0.982353"]
    for number in numbers:
        data = f"a ||| b ||| {number}\n".encode()
        path, out = write(tmp_path / "table", data), tmp_path / "out"
        with Input(str(path)) as source, Output(str(out)) as output:
            threshold_table(source, output, {0: float(number)}, TableScan())
        assert read(out) == data
