"""`phrasetool binarize`, with fake programs in place of Moses'."""

import os
import signal
import subprocess
import time

import pytest

from tests.commands import COMMAND, clean_environment, run_inside, run_outside, write
from tests.fake_moses import install

TABLE = b"das ||| that ||| 0.5 0.25 ||| 0-0\ndas ||| the ||| 0.5 0.25 ||| 0-0\n"
REORDERING = b"das ||| that ||| 0.2 0.2 0.6 0.2 0.2 0.6\ndas ||| the ||| 0.2 0.2 0.6 0.2 0.2 0.6\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a table and a reordering table; the fake programs are on PATH."""
    programs = install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    write(tmp_path / "table.gz", TABLE)
    write(tmp_path / "reordering.gz", REORDERING)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "made", "feature"),
    [
        ("compact", "small.minphr", "PhraseDictionaryCompact"),
        ("probing", "small", "ProbingPT"),
        ("ondisk", "small", "PhraseDictionaryOnDisk"),
    ],
)
def test_the_ini_lines_are_printed(folder, kind, made, feature):
    outcome = run_inside("binarize", "table.gz", "--to", kind, "-o", "small", "--reordering-table", "reordering.gz")
    assert outcome.code == 0
    assert outcome.out.decode().splitlines() == [
        f"{feature} name=TranslationModel0 num-features=2 path={folder / made} input-factor=0 output-factor=0",
        "LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff input-factor=0 "
        f"output-factor=0 path={folder / 'reordering'}",
    ]
    assert outcome.err.count("phrasetool: running in ") == 2
    assert sorted(os.listdir(folder)) == sorted(["bin", "reordering.gz", "reordering.minlexr", made, "table.gz"])


def test_quiet(folder):
    options = ("-q", "--name", "Other", "--factors", "1,2")
    outcome = run_inside("binarize", "table.gz", "--to", "ondisk", "-o", "small", *options)
    assert outcome.err == ""
    assert b"name=Other " in outcome.out
    assert outcome.out.endswith(b"output-factor=0,1\n")


def test_a_program_that_fails(folder, monkeypatch):
    monkeypatch.setenv("FAKE_FAILURE", "CreateProbingPT")
    outcome = run_outside("binarize", "table.gz", "--to", "probing", "-o", "small")
    assert (outcome.code, outcome.out) == (1, b"")
    assert outcome.err.splitlines()[1:] == [
        "phrasetool: CreateProbingPT: Starting...",
        "phrasetool: CreateProbingPT: cmph: no memory",
        "phrasetool: error: CreateProbingPT ended with code 3; nothing was written",
    ]
    assert sorted(os.listdir(folder)) == ["bin", "reordering.gz", "table.gz"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_no_files(folder, number):
    environment = clean_environment(FAKE_SLEEP="CreateOnDiskPt")
    command = [*COMMAND, "binarize", "table.gz", "--to", "ondisk", "-o", "small", "-q"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(folder.glob(".small.*/half")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, error_output = process.communicate(timeout=60)
    assert process.returncode in (130, 128 + number)
    assert b"Traceback" not in error_output
    assert sorted(os.listdir(folder)) == ["bin", "reordering.gz", "table.gz"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing", "--to", "compact", "-o", "x"], 1, "nothing: No such file"),
        (["table.gz", "--to", "compact", "-o", "x", "--moses-bin", "elsewhere"], 1, "processPhraseTableMin of Moses"),
        (["table.gz", "--to", "probing", "-o", "table.gz"], 1, "the output is the input"),
        (["table.gz", "--to", "probing", "-o", "no/such/folder"], 1, "no/such/folder: cannot write"),
        (["-", "--to", "probing", "-o", "x"], 2, "files only"),
        (["table.gz", "--to", "probing", "-o", "a b"], 1, "a path in a moses.ini can have no blank and no #"),
        (["table.gz", "--to", "probing", "-o", "x", "--name", "a=b"], 1, "'a=b' cannot be the name of a feature"),
        (["table.gz", "--to", "probing", "-o", "x", "--table-limit", "9"], 2, "--table-limit is for ondisk tables"),
        (["table.gz", "--to", "elsewhere", "-o", "x"], 2, "'elsewhere' is not one of"),
        (["table.gz", "--to", "ondisk", "-o", "x", "--factors", "1"], 2, "not two counts"),
        (["table.gz", "--to", "ondisk", "-o", "x", "--extra", "'"], 2, "--extra: No closing quotation"),
        (["table.gz", "--to", "compact", "-o", "x", "--reordering-table", "bin"], 1, "bin: is a directory"),
    ],
)
def test_bad_input(folder, arguments, code, message):
    outcome = run_inside("binarize", *arguments)
    assert outcome.code == code
    assert message in outcome.err
    assert outcome.out == b""
    assert sorted(os.listdir(folder)) == ["bin", "reordering.gz", "table.gz"]
