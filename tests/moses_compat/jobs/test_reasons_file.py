"""The file with the reasons why entries were removed."""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from moses_compat.files.streams import Input, Output
from moses_compat.jobs.reasons_file import ReasonsWriter
from moses_compat.tables.blocks import raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.pruning.decision import Reasons
from tests import naive
from tests.commands import write
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each

NAMES = ("count", "top")


def random_decisions(lines):
    """Return random decisions about the lines of a table: which fail, which are kept, and the reasons."""
    rng = np.random.default_rng(lines)
    fails, keep = rng.random((2, lines)) < 0.6
    criterion_scores = rng.normal(size=(lines, 2)).astype(np.float32)
    return fails, keep, Reasons(NAMES, criterion_scores, criterion_scores < 0.3)


def write_reasons(path, table, block_bytes):
    lines = len(naive.split_lines(table))
    fails, keep, reasons = random_decisions(lines)
    source = write(path.with_suffix(".table"), table)
    with Input(str(source)) as text, Output(str(path)) as output, ReasonsWriter(output, NAMES) as writer:
        for raw in raw_blocks(text, block_bytes):
            block, _ = TableParser(scores=raw.scores)(raw.first_entry, raw.text)
            rows = slice(raw.first_entry, raw.first_entry + raw.lines)
            # The mask of kept lines is random, too.
            result = SimpleNamespace(
                block=block, decision=SimpleNamespace(fails=fails[rows]), keep=keep[rows], reasons=reasons.part(rows)
            )
            writer.write(writer.prepare(result))
    return path


def expected_rows(table):
    lines = naive.parse_table(table, naive.first_score_count(table))[0]
    fails, keep, reasons = random_decisions(len(lines))
    labels = ["together", "count", "top", "count+top"]
    return [
        {
            "line": i + 1,
            "source": line.source.strip(b" \t").decode(errors="replace"),
            "target": line.target.strip(b" \t").decode(errors="replace"),
            "count": float(reasons.criterion_scores[i, 0]), "top": float(reasons.criterion_scores[i, 1]),
            "failed": labels[int(reasons.fails[i] @ [1, 2])], "kept": bool(keep[i]),
        }
        for i, line in enumerate(lines)
        if fails[i] and line.fault == "ok"
    ]  # fmt: skip


@for_each("table", TABLES)
def test_rows(tmp_path, table):
    for block_bytes in (1, 200, 1 << 20):
        path = write_reasons(tmp_path / "r", table, block_bytes)
        assert pq.read_table(path).to_pylist() == expected_rows(table), block_bytes


def test_malformed_lines_have_no_row(tmp_path):
    assert pq.read_table(write_reasons(tmp_path / "r", MALFORMED, 1 << 20)).to_pylist() == expected_rows(MALFORMED)


def test_bytes_that_are_not_utf_8(tmp_path):
    table = b"gr\xfcn ||| gr\xc3\xbcn ||| 0.5\ngr\xc3 ||| \xe4\xb8\xad\xff ||| 0.5\n" * 9
    rows = pq.read_table(write_reasons(tmp_path / "r", table, 1 << 20)).to_pylist()
    assert rows == expected_rows(table)
    assert {row["source"] for row in rows} == {"gr\ufffdn", "gr\ufffd"}


def test_block_sizes_do_not_change_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("moses_compat.jobs.reasons_file._GROUP", 50)
    paths = [write_reasons(tmp_path / str(size), TABLES["seven fields"], size) for size in (1, 999, 1 << 20)]
    assert len({path.read_bytes() for path in paths}) == 1
    groups = pq.ParquetFile(tmp_path / "1").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert len(sizes) > 1
    assert set(sizes[:-1]) == {50}


def test_pandas_reads_it(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(write_reasons(tmp_path / "r", TABLES["seven fields"], 1 << 20))
    assert list(frame) == ["line", "source", "target", "count", "top", "failed", "kept"]
    assert frame["failed"].astype(str).isin(["together", "count", "top", "count+top"]).all()


@pytest.mark.parametrize("text", [b"", b"a ||| b ||| 1\n"])
def test_no_removed_entries(tmp_path, text):
    with Output(str(tmp_path / "r")) as output, ReasonsWriter(output, NAMES):
        pass
    assert pq.read_table(tmp_path / "r").num_rows == 0
    assert pq.read_table(tmp_path / "r").column_names[-1] == "kept"
