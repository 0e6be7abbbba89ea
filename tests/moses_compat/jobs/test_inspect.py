import json

from moses_compat.files.streams import Input
from moses_compat.jobs.inspect import SCHEMA_VERSION, loader_lines, table_document, table_lines
from moses_compat.tables.inspect import inspect_table, verdicts
from tests.commands import write

GOOD = b"a ||| x ||| 0.5 1 1 0 ||| 0-0 ||| 1 1 1\nb ||| y ||| 0.25 1 1 0 ||| 0-0 ||| 1 1 1\n"


def summary_of(tmp_path, data):
    with Input(str(write(tmp_path / "table", data))) as source:
        return inspect_table(source)


def test_a_table_in_lines(tmp_path):
    summary = summary_of(tmp_path, GOOD)
    lines = list(table_lines("mine", summary))
    assert lines[0] == f"mine: {summary.kind}, 2 entries, 2 sources, {len(GOOD)} bytes of text"
    assert "  order                sorted (LC_ALL=C)" in lines
    first, *_, last = (line for line in lines if line.startswith("    "))
    assert first.startswith("    1  [")
    assert first.endswith("0.25 .. 0.5, mean 0.375  phi(f|e)")
    assert "2 zeros (Moses reads them as exp(-100))" in last


def test_oddities_are_listed_with_their_first_line(tmp_path):
    summary = summary_of(tmp_path, GOOD + b"a ||| x ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n")
    lines = list(table_lines("mine", summary))
    assert "  order                not sorted: line 3 is below the one before it" in lines
    assert "  1 sources occur again after other sources, from line 3" in lines


def test_a_file_without_entries(tmp_path):
    first, second = table_lines("mine", summary_of(tmp_path, b"no table\n"))
    assert first.endswith("1 lines, 9 bytes of text")
    assert second.startswith("  as an entry of a phrase table, line 1: ")


def test_programs_that_load_the_table(tmp_path):
    loaders = verdicts(summary_of(tmp_path, GOOD))
    lines = list(loader_lines(loaders))
    assert lines[0] == "  compatible programs of Moses"
    assert [line.split()[0] for line in lines[1:] if line[4] != " "] == [verdict.loader for verdict in loaders]
    # A program has a line for each objection, or a single one; objections to a usable program add a line of options.
    expected_count = sum(
        max(len(verdict.objections), 1) + (bool(verdict.objections) and verdict.answer != "no") for verdict in loaders
    )
    assert len(lines) == 1 + expected_count
    assert list(loader_lines([])) == []
    unsorted = verdicts(summary_of(tmp_path, b"b ||| y ||| 1\n" + b"a ||| x ||| 1\n" + b"b ||| z ||| 1\n"))
    assert any("line 2: " in line or "line 3: " in line for line in loader_lines(unsorted))


def test_the_document(tmp_path):
    summary = summary_of(tmp_path, GOOD)
    loaders = verdicts(summary)
    document = json.loads(json.dumps(table_document("mine", summary, loaders)))
    assert (document["schema_version"], document["file"], document["entries"]) == (SCHEMA_VERSION, "mine", 2)
    assert document["loaders"][loaders[0].loader]["options"] == loaders[0].options
