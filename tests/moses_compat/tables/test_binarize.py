"""Calls of Moses' binarisers, checked by stand-ins."""

import json
import os
from pathlib import Path

import pytest

from moses_compat.tables.binarize import (
    BinarizeOptions,
    binarize,
    find_moses_program,
    output_path,
    reordering_output_path,
)
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import write
from tests.fake_moses import install
from tests.tables import TABLES
from tests.variants import for_each

LINES = [
    b"das ||| that ||| 0.5 0.25 0.5 1 ||| 0-0 ||| 3 2 1 ||| |||",
    b"das ||| the ||| 0.5 0.25 0.5 1 ||| 0-0 ||| 3 2 1 ||| |||",
    b"das haus ||| the house ||| 1 1 1 1 ||| 0-0 1-1 ||| 3 2 1 ||| |||",
]
GOOD = b"".join(line + b"\n" for line in sorted(LINES))
KINDS = ["compact", "probing", "ondisk"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return str(install(tmp_path_factory.mktemp("moses") / "bin"))


@pytest.fixture
def told():
    return []


def make(table, kind, programs, told, reordering=(), **options):
    output = str(table.parent / "made")
    chosen = BinarizeOptions(kind, programs, **options)
    return binarize(str(table), output, chosen, tuple(map(str, reordering)), tell=told.append)


def content(binary, kind):
    """Return the name of the program, its arguments, and the lines of its input."""
    path = {"compact": "", "probing": "TargetColl.dat", "ondisk": "TargetColl.dat"}[kind]
    first, *lines = Path(binary.path, path).read_bytes().split(b"\n")
    return *json.loads(first), lines


def with_scores(lines, scores):
    fields = [line.split(b" ||| ") for line in lines]
    return [b" ||| ".join([*f[:2], b" ".join([b"0.5"] * scores), *f[3:]]) for f in fields]


@pytest.mark.parametrize("scores", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_scores_reaches_the_program(tmp_path, programs, told, kind, scores):
    table = write(tmp_path / "table.gz", b"\n".join(with_scores(sorted(LINES), scores)) + b"\n")
    (binary,) = make(table, kind, programs, told, threads=2)
    name, arguments, lines = content(binary, kind)
    assert lines == with_scores(sorted(LINES), scores)
    rank = min(2, scores - 1)
    ranked = [] if scores == 4 else ["-rankscore", str(rank)]
    source = str(table)
    assert (name, arguments) == {
        "compact": ("processPhraseTableMin",
                    ["-in", source, "-out", "made", "-nscores", str(scores), "-threads", "2", *ranked]),
        "probing": ("CreateProbingPT", ["--num-scores", str(scores), "--input-pt", source, "--output-dir", "made"]),
        "ondisk": ("CreateOnDiskPt", ["1", "1", str(scores), "0", str(rank), source, "made"]),
    }[kind]  # fmt: skip
    path = os.path.abspath(binary.path)
    assert f"num-features={scores} path={path} input-factor=0 output-factor=0" in binary.feature_line
    assert len(told) == 1
    assert told[0].startswith("running in ")
    assert told[0].endswith(" ".join(arguments))
    assert sorted(os.listdir(tmp_path)) == sorted(["table.gz", os.path.basename(binary.path)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        b"".join(line + b"\n" for line in sorted(LINES, reverse=True)),
        GOOD.replace(b" ", b"  "),
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"0.5 0.25", b"0.5\t0.25"),
        GOOD.replace(b" ||| ", b"|||"),
        GOOD.replace(b"|||\n", b"||| ||| 8\n"),
    ],
    ids=["unsorted", "double spaces", "crlf", "tabs", "no spaces", "eight fields"],
)
def test_a_table_in_another_form_is_copied(tmp_path, programs, told, kind, text):
    (binary,) = make(write(tmp_path / "table", text), kind, programs, told)
    assert content(binary, kind)[2] == sorted(LINES)
    assert "table:" in told[0]
    assert "copy is binarised" in told[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["table", "table.gz"])
def test_a_misleading_file_name(tmp_path, programs, told, kind, name):
    packed = write(tmp_path / "other.gz", GOOD).read_bytes()
    table = tmp_path / name
    table.write_bytes(packed if name == "table" else GOOD)
    (binary,) = make(table, kind, programs, told)
    assert content(binary, kind)[2] == sorted(LINES)


# Tables that some or all binarisers cannot process, and the reasons.
_ROOM, _LOST, _BARS = "room for 1.2 keys a source", "alignment point lies beyond", "a token of bars"
REFUSED = {
    "empty": dict.fromkeys(KINDS, "holds no entry"),
    "empty source": dict.fromkeys(KINDS, "the source is empty"),
    "zero and negative": dict.fromkeys(KINDS, "a negative score"),
    "unknown properties": {"probing": "LexRO", "ondisk": "a property that Moses does not know"},
    "table with reordering scores": {"ondisk": "a property that Moses does not know"},
    "broken fields": {"compact": _LOST, "ondisk": "seventh field"},
    "two counts": {"compact": _LOST, "ondisk": "point beyond the target"},
    "empty targets": {"probing": "an empty target", "ondisk": "an empty target"},
    "pipes": {"probing": _BARS, "ondisk": _BARS},
    "stray pipes": {"probing": _BARS, "ondisk": _BARS},
    "bracket tokens": {"ondisk": "empty brackets"},
    "control characters": {"ondisk": "zero byte"},
    "glue": {"probing": _ROOM},
    "target syntax": {"probing": _ROOM},
    "hierarchical": {"probing": _ROOM},
    "non-terminals differ": {"probing": _ROOM},
}


@for_each("name", sorted(TABLES))
@for_each("kind", KINDS)
def test_moses_tables(tmp_path, programs, told, kind, name):
    table = write(tmp_path / "table.gz", TABLES[name])
    message = REFUSED.get(name, {}).get(kind)
    if kind == "compact" and b"[X] |||" in TABLES[name] and message is None:
        message = "is a rule table"
    if message is not None:
        with pytest.raises(DataError, match=message):
            make(table, kind, programs, told)
        assert os.listdir(tmp_path) == ["table.gz"]
        return
    (binary,) = make(table, kind, programs, told)
    assert len(content(binary, kind)[2]) == len(TABLES[name].removesuffix(b"\n").split(b"\n"))


def test_empty_targets(tmp_path, programs, told):
    (binary,) = make(write(tmp_path / "table", TABLES["empty targets"]), "compact", programs, told)
    assert b"! |||  ||| 1 1 0.5 0.5 0.1 2.718" in content(binary, "compact")[2]


@pytest.mark.parametrize("kind", KINDS)
def test_omitted_fields_cause_warnings(tmp_path, programs, kind):
    """CreateOnDiskPt keeps sparse scores and properties; the others do not."""
    line = b"zoo ||| zoo ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| dom 1 ||| {{Counts 1 1 1}}\n"
    table = write(tmp_path / "table", GOOD + line)
    warnings = []
    binarize(str(table), str(tmp_path / "made"), BinarizeOptions(kind, programs), warn=warnings.append)
    left_out = [] if kind == "ondisk" else ["sparse scores", "properties"]
    assert warnings == [f"{table}:{len(LINES) + 1}: {field} are left out" for field in left_out]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([LINES[0], LINES[1].replace(b"0-0", b"")], "without a word alignment"),
        ([b" ||| ".join(line.split(b" ||| ")[:3]) for line in LINES], "without a word alignment"),
        ([*LINES, LINES[0].replace(b"0.25", b"0.5")], "duplicate pairs"),
    ],
)
def test_compact_without_rank_encoding(tmp_path, programs, told, lines, reason):
    (binary,) = make(write(tmp_path / "table", b"\n".join(sorted(lines))), "compact", programs, told)
    assert content(binary, "compact")[1][-2:] == ["-encoding", "None"]
    assert any(reason in message for message in told)


def test_factors_limits_and_more_arguments(tmp_path, programs, told):
    table = write(tmp_path / "table", GOOD.replace(b"the", b"the|DT").replace(b"house", b"house|NN"))
    text = b"".join(sorted(line.replace(b"that", b"that|DT") for line in table.read_bytes().splitlines(True)))
    write(table, text)
    (binary,) = make(table, "ondisk", programs, told, table_limit=50)
    assert content(binary, "ondisk")[1][:5] == ["1", "2", "4", "50", "2"]
    assert binary.feature_line.endswith("input-factor=0 output-factor=0,1")
    (binary,) = make(table, "ondisk", programs, told, factors=(1, 1))
    assert content(binary, "ondisk")[1][:2] == ["1", "1"]
    os.rename(tmp_path / "made", tmp_path / "other")
    (binary,) = make(table, "probing", programs, told, extra=("--log-prob", "--max-cache-size", "10"))
    assert content(binary, "probing")[1][-3:] == ["--log-prob", "--max-cache-size", "10"]


def test_rule_tables_and_reordering_properties(tmp_path, programs, told):
    rules = b"</s> [X] ||| </s> [S] ||| 1 ||| 0-0\nhaus [X] ||| house [X] ||| 1 ||| 0-0\n"
    (binary,) = make(write(tmp_path / "rules", rules), "probing", programs, told)
    assert "--scfg" in content(binary, "probing")[1]
    with pytest.raises(DataError, match="rules: is a rule table"):
        make(tmp_path / "rules", "compact", programs, told)
    text = GOOD.replace(b" |||\n", b" ||| {{LexRO 0.2 0.2 0.6 0.2 0.2 0.6}}\n")
    (binary,) = make(write(tmp_path / "table", text), "probing", programs, told)
    arguments = content(binary, "probing")[1]
    assert arguments[arguments.index("--num-lex-scores") + 1] == "6"


@pytest.mark.parametrize("kind", KINDS)
def test_reordering_tables(tmp_path, programs, told, kind):
    table = write(tmp_path / "table", GOOD)
    lines = [b"das ||| the ||| 0.2 0.2 0.6 0.2 0.2 0.6 ", b"das ||| that ||| 0.2 0.2 0.6 0.2 0.2 0.6 "]
    first = write(tmp_path / "reordering.gz", b"\n".join(lines))
    second = write(tmp_path / "other", b"das ||| that ||| 0.5 0.5\n")
    phrases, *reordering = make(table, kind, programs, told, [first, second])
    assert content(phrases, kind)[2] == sorted(LINES)
    paths = [str(tmp_path / f"{name}.minlexr") for name in ("reordering", "other")]
    assert [binary.path for binary in reordering] == paths
    name, _, result = content(reordering[0], "compact")
    assert name == "processLexicalTableMin"
    assert [line.rstrip() for line in result] == [line.rstrip() for line in sorted(lines)]
    assert "num-features=6 type=wbe-msd-bidirectional-fe-allff" in reordering[0].feature_line
    # Moses adds the ending to the name in the ini.
    assert reordering[0].feature_line.endswith(f"path={tmp_path / 'reordering'}")


def test_nothing_appears_when_one_of_two_fails(tmp_path, programs, told):
    table = write(tmp_path / "table", GOOD)
    twice = write(tmp_path / "reordering", b"das ||| the ||| 0.5 0.5\n" * 2)
    with pytest.raises(DataError, match="reordering: a pair occurs twice"):
        make(table, "compact", programs, told, [twice])
    assert sorted(os.listdir(tmp_path)) == ["reordering", "table"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_table_is_replaced_only_by_a_whole_one(tmp_path, programs, told, kind, monkeypatch):
    table = write(tmp_path / "table", GOOD)
    make(table, kind, programs, told)
    smaller = write(tmp_path / "table", GOOD.split(b"\n")[0])
    before = sorted(os.listdir(tmp_path))
    program = {"compact": "processPhraseTableMin", "probing": "CreateProbingPT", "ondisk": "CreateOnDiskPt"}[kind]
    monkeypatch.setenv("FAKE_FAILURE", program)
    told.clear()
    with pytest.raises(PhraseToolError, match=f"{program} ended with code 3; nothing was written"):
        make(smaller, kind, programs, told)
    assert f"{program}: cmph: no memory" in told
    path = tmp_path / ("made.minphr" if kind == "compact" else "made")
    assert content(type("Made", (), {"path": path}), kind)[2] == sorted(LINES)
    assert sorted(os.listdir(tmp_path)) == before
    monkeypatch.delenv("FAKE_FAILURE")
    (binary,) = make(smaller, kind, programs, told)
    assert content(binary, kind)[2] == sorted(LINES)[:1]
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_writes_nothing(tmp_path, programs, told, kind, monkeypatch):
    for program in ("processPhraseTableMin", "CreateProbingPT", "CreateOnDiskPt"):
        monkeypatch.setenv("FAKE_NOTHING", program)
        table = write(tmp_path / "table", GOOD)
        if program.startswith({"compact": "process", "probing": "CreateP", "ondisk": "CreateO"}[kind]):
            with pytest.raises(PhraseToolError, match=f"{program} succeeded but wrote no table"):
                make(table, kind, programs, told)
    assert os.listdir(tmp_path) == ["table"]


def test_a_probing_table_with_another_number_of_scores(tmp_path, programs, told, monkeypatch):
    monkeypatch.setenv("FAKE_SCORES", "5")
    with pytest.raises(PhraseToolError, match="whose config says num_scores 5, expected 4"):
        make(write(tmp_path / "table", GOOD), "probing", programs, told)
    assert os.listdir(tmp_path) == ["table"]


def test_an_aborted_program_names_the_signal(tmp_path, programs, told):
    table = write(tmp_path / "table", b"das ||| the ||| 1 1 ||| 0-0\n")
    with pytest.raises(PhraseToolError, match="processPhraseTableMin ended by SIGABRT"):
        make(table, "compact", programs, told, extra=("-rankscore", "2"))


@pytest.mark.parametrize("program", ["processPhraseTableMin", "CreateProbingPT", "CreateOnDiskPt"])
def test_a_missing_program(tmp_path, told, program, monkeypatch):
    kind = {"processPhraseTableMin": "compact", "CreateProbingPT": "probing", "CreateOnDiskPt": "ondisk"}[program]
    table = write(tmp_path / "table", b"not even a table")
    with pytest.raises(PhraseToolError, match=rf"{program} of Moses.* is needed and is not in {tmp_path}"):
        make(table, kind, str(tmp_path), told)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PhraseToolError, match=rf"{program} of Moses.* is needed and is not on the PATH"):
        make(table, kind, None, told)


def test_programs_in_a_folder_of_moses(programs):
    assert find_moses_program("CreateProbingPT", os.path.dirname(programs)) == os.path.join(programs, "CreateProbingPT")


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_must_not_be_replaced(tmp_path, programs, told, kind):
    table = write(tmp_path / "table", GOOD)
    existing = tmp_path / ("made.minphr" if kind == "compact" else "made")
    if kind == "compact":
        existing.mkdir()
    else:
        existing.write_text("notes")
    with pytest.raises(PhraseToolError, match=r"is a (folder|file)"):
        make(table, kind, programs, told)
    if kind != "compact":
        existing.unlink()
        existing.mkdir()
        (existing / "thesis.tex").write_text("notes")
        with pytest.raises(PhraseToolError, match="has other content"):
            make(table, kind, programs, told)
        (existing / "thesis.tex").unlink()
        make(table, kind, programs, told)
        # A table whose folder contains a foreign file is not replaced either.
        (existing / "thesis.tex").write_text("notes")
        with pytest.raises(PhraseToolError, match="has other content"):
            make(table, kind, programs, told)


def test_a_pipe_is_refused(tmp_path, programs, told):
    os.mkfifo(tmp_path / "table")
    with pytest.raises(DataError, match="table: is a pipe"):
        make(tmp_path / "table", "compact", programs, told)


def test_output_paths():
    assert output_path("compact", "m/pt") == output_path("compact", "m/pt.minphr") == "m/pt.minphr"
    assert output_path("probing", "m/pt/") == "m/pt"
    assert reordering_output_path("m/pt/", "elsewhere/reordering.gz") == "m/reordering.minlexr"


@pytest.mark.parametrize("kind", ["probing", "ondisk", "compact"])
def test_a_byte_order_mark_is_no_part_of_the_first_word(kind, moses, tmp_path):
    """Moses' programs would read it as part of the word; here, the real programs are run."""
    text = b"".join(b"%b ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" % word for word in (b"a", b"b"))
    folder = os.path.dirname(moses("CreateProbingPT"))
    contents = []
    for name, data in (("plain", text), ("marked", b"\xef\xbb\xbf" + text)):
        (tmp_path / name).mkdir()
        table = write(tmp_path / name / "table", data)
        (binary,) = binarize(str(table), str(tmp_path / name / "out"), BinarizeOptions(kind, folder))
        output = Path(binary.path)
        # The padding between numbers in these files is uninitialised memory.
        padded = ("cache", "TargetColl.dat")
        files = sorted(output.iterdir()) if output.is_dir() else [output]
        contents.append({path.name: path.read_bytes() for path in files if path.name not in padded})
    assert contents[0] == contents[1]
