"""The (estimated) size of a table."""

import pytest

from moses_compat.files.streams import Input
from moses_compat.jobs import prune_ranking
from moses_compat.jobs.prune_ranking import TableSize, size_of_table
from tests import naive
from tests.commands import write
from tests.tables import MALFORMED, TABLES


def size_of(path):
    with Input(str(path)) as source:
        return size_of_table(source)


def test_small_tables_are_counted(tmp_path):
    data = TABLES["seven fields"]
    lines = naive.parse_table(data, 4)[0]
    words = sum(len(naive.tokens(field)) for line in lines for field in (line.source, line.target))
    assert size_of(write(tmp_path / "t", data)) == TableSize(len(lines), words)
    assert size_of(write(tmp_path / "t", b"")) == TableSize(0, 0)
    assert size_of(write(tmp_path / "t", MALFORMED)).entries == 9


@pytest.mark.parametrize("name", ["t", "t.gz"])
def test_sizes_of_large_tables_are_extrapolated(tmp_path, monkeypatch, name):
    path = write(
        tmp_path / name, b"".join(b"w%x a ||| x y z ||| 0.5\n" % (i * 7919**7 % 10**12) for i in range(100_000))
    )
    monkeypatch.setattr(prune_ranking, "_SAMPLE_BYTES", 1 << 21)
    result = size_of(path)
    # A compressed file is read further than the text that is counted, which lowers the estimate.
    assert result.entries == pytest.approx(100_000, rel=0.25)
    assert result.words / result.entries == pytest.approx(5, rel=0.01)
