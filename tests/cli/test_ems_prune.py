"""`phrasetool ems-prune`, whose arguments are stems of file names."""

import os
import re

import pytest

from tests.commands import read, run_inside, write
from tests.tables import TABLES

TEXT = TABLES["seven fields"]
# Texts in a step's standard error, in upper or lower case, that the experiment management system takes for a crash.
CRASHES = re.compile(
    "error|killed|core dumped|can't read|no such file or directory|unknown option|died at|exit code|permission denied|"
    "segmentation fault|abort|no space left on device|: not found|can't locate|unrecognized option|exception",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", ["phrase-table.3.gz", "phrase-table.3"])
def test_stems(model_folder, tmp_path, name):
    write(tmp_path / name, TEXT)
    rule = ("-m", model_folder, "-t", "0.3", "--keep-top", "1")
    outcome = run_inside("ems-prune", *rule, tmp_path / "phrase-table.3", tmp_path / "phrase-table-pruned.3")
    assert outcome.code == 0
    assert outcome.out == b""
    assert not CRASHES.search(outcome.err)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "phrase-table-pruned.3.gz"])
    plain = run_inside("prune", tmp_path / name, *rule, "-q")
    assert read(tmp_path / "phrase-table-pruned.3.gz") == plain.out


def test_the_reordering_table_is_pruned_too(model_folder, tmp_path):
    lines = [line.split(b" ||| ") for line in TEXT.splitlines()]
    write(tmp_path / "pt.gz", TEXT)
    write(tmp_path / "ro.gz", b"".join(b" ||| ".join([*line[:2], b"0.5 0.5"]) + b"\n" for line in lines))
    outcome = run_inside(
        "ems-prune", "-q", "-m", model_folder, "-t", "0.3", "--keep-top", "1",
        "--reordering-table", tmp_path / "ro.gz", "--reordering-out", tmp_path / "ro.small.gz",
        tmp_path / "pt", tmp_path / "small",
    )  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    kept = [line.split(b" ||| ")[:2] for line in read(tmp_path / "small.gz").splitlines()]
    assert 0 < len(kept) < len(lines)
    assert [line.split(b" ||| ")[:2] for line in read(tmp_path / "ro.small.gz").splitlines()] == kept


def test_a_factored_table_keeps_its_suffix(model_folder, tmp_path):
    write(tmp_path / "pt.1.0-0,1.gz", TABLES["factored target"])
    write(tmp_path / "pt.1.lex.gz", b"")
    outcome = run_inside("ems-prune", "-q", "-m", model_folder, "-t", "-1", tmp_path / "pt.1", tmp_path / "small.1")
    assert (outcome.code, outcome.err) == (0, "")
    assert read(tmp_path / "small.1.0-0,1.gz") == TABLES["factored target"]


@pytest.mark.parametrize(
    ("files", "arguments", "code", "message"),
    [
        ([], ["-t", "0.5", "pt", "small"], 1, "pt: no such table, with or without .gz"),
        (["pt.0-0.gz", "pt.1-1.gz"], ["-t", "0.5", "pt", "small"], 1, "pt: several tables have this name"),
        (["pt.gz"], ["pt"], 2, "then IN and OUT"),
        (["pt.gz"], [], 2, "then IN and OUT"),
        (["pt.gz"], ["-t", "0.5", "-o", "x", "pt", "small"], 2, "the output is OUT.gz"),
        (["pt.gz"], ["--sweep", "0:1:0.1", "pt", "small"], 2, "the output is OUT.gz"),
        (["pt.gz"], ["--no-such-option", "pt", "small"], 2, "No such option"),
        (["pt.gz"], ["pt", "small"], 2, "give one of --threshold"),
    ],
)
def test_bad_usage(model_folder, tmp_path, monkeypatch, files, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHRASETOOL_MODEL", str(model_folder))
    for name in files:
        write(tmp_path / name, TEXT)
    outcome = run_inside("ems-prune", *arguments)
    assert outcome.code == code
    assert message in outcome.err
    assert sorted(os.listdir(tmp_path)) == sorted(files)
