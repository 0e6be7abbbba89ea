"""Files that cannot be tables are refused because of their first lines."""

from __future__ import annotations

import random

import pytest

from moses_compat.files.streams import Input
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import PHRASE_TABLE, REORDERING_TABLE, check_plausible, looks_like
from phrasetool.errors import DataError
from tests.commands import write
from tests.tables import TABLES


def orientations(lines, size, directions):
    rng = random.Random(1)
    rows = []
    for line in range(lines):
        scores = []
        for _ in range(directions):
            counts = [rng.randint(0, 9) + 0.5 for _ in range(size)]
            scores += [f"{count / sum(counts):.6g}" for count in counts]
        rows.append(f"w{line} ||| x ||| {' '.join(scores)}\n")
    return "".join(rows).encode()


@pytest.mark.parametrize(("size", "directions"), [(3, 1), (3, 2), (4, 1), (4, 2), (2, 1), (2, 2)])
def test_a_reordering_table(size, directions):
    assert looks_like(orientations(20, size, directions)) == REORDERING_TABLE


def test_no_phrase_table_looks_like_a_reordering_table():
    for name, table in TABLES.items():
        assert looks_like(table) in (PHRASE_TABLE, None), name


def test_tables_that_may_be_of_either_kind():
    assert looks_like(b"a ||| b ||| 0.25 0.25 0.25 0.25\nb ||| b ||| 0.25 0.25 0.25 0.25\n") is None
    assert looks_like(b"".join(b"w%d ||| x ||| 0.5 0.%d 0.1 0.7\n" % (k, k) for k in range(9))) is None
    assert looks_like(orientations(2, 3, 2)) is None
    assert looks_like(b"") is None


@pytest.mark.parametrize("name", ["model 1", "lexicalised", "twelve columns", "hierarchical"])
def test_a_phrase_table_instead_of_a_reordering_table(tmp_path, name):
    path = str(write(tmp_path / "t.gz", TABLES[name]))
    with (
        Input(path) as source,
        pytest.raises(DataError, match="looks like a phrase table; expected a reordering table"),
    ):
        check_plausible(source, TableScan(), REORDERING_TABLE)
    recorded = []
    with Input(path) as source:
        check_plausible(source, TableScan(force=True, warn=recorded.append), REORDERING_TABLE)
        assert source.read_all() == TABLES[name]
    assert len(recorded) == 1


@pytest.mark.parametrize(("text", "found"), [
    (b"", "is empty"),
    (b" \n\n\t\n", "holds blank lines only"),
])  # fmt: skip
def test_empty_files(tmp_path, text, found):
    path = str(write(tmp_path / "t", text))
    with Input(path) as source, pytest.raises(DataError, match=f"t: {found}; expected a phrase table"):
        check_plausible(source, TableScan())
    with Input(path) as source:
        check_plausible(source, TableScan(allow_empty=True))


@pytest.mark.parametrize(("text", "kind"), [
    (b"0-0 1-1\n\n2-1\n", "word alignments"),
    (b"das haus\nist\n", "plain text"),
    (b"das\tthe\t0.5 0.2\n", "a table with tabs between fields"),
    (b"das || the || 0.5 0.2\n", "a table with || between fields"),
    (b'{"format": 1}\n', "JSON"),
])  # fmt: skip
def test_other_files(tmp_path, text, kind):
    with Input(str(write(tmp_path / "t", text))) as source, pytest.raises(DataError, match=f"t: looks like {kind}"):
        check_plausible(source, TableScan())
