"""A sweep reports the table sizes at its thresholds and writes nothing."""

import pytest

from moses_compat.jobs.prune import Swept, prune, sweep
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.thresholds import Threshold
from tests import naive
from tests.commands import read, write
from tests.tables import TABLES

DATA = TABLES["seven fields"]
LINES = naive.split_lines(DATA)


def ask(tmp_path, **options):
    """Return a request for a table whose scores 2 and 4 are similarities."""
    table = str(write(tmp_path / "t", DATA))
    return PruneRequest(table, columns=(1, 3), scale="raw", scan=TableScan(block_bytes=300), **options)


@pytest.mark.parametrize("method", [None, "semantic", "count", "probability"])
def test_reported_sizes_are_those_of_pruned_tables(tmp_path, method):
    thresholds = [1.0, 2.0, 5.0, 30.0, 1e9] if method == "count" else [0.0, 0.05, 0.3, 0.7, 1.0]
    options = {"method": method, "keep_top": 1, "protect": "words"}
    result = sweep(ask(tmp_path, sweep=thresholds, **options))
    assert [row[0] for row in result] == thresholds
    assert {row[2] for row in result} == {len(LINES)}
    assert not (tmp_path / "out").exists()
    for threshold, kept, *_ in result:
        prune(ask(tmp_path, threshold=Threshold.of(threshold), output=str(tmp_path / "out"), **options))
        assert read(tmp_path / "out").count(b"\n") == kept
    assert len({row[1] for row in result}) > 2


def test_protected_entries_fail_and_are_kept():
    assert Swept(0.5, 8, 10, 6).protected == 4
