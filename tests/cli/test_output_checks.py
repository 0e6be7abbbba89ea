import os
import shlex
import subprocess
from types import SimpleNamespace

import pytest

from moses_compat.files import streams
from phrasetool.errors import PhraseToolError
from phrasetool_cli.checks import check_inputs, check_outputs
from tests.commands import COMMAND, run_inside, write
from tests.small_experiment import write_experiment


def test_checks_leave_no_files(tmp_path):
    (tmp_path / "there").write_bytes(b"as it was")
    check_outputs([], [str(tmp_path / "new.gz"), str(tmp_path / "there"), "-", "/dev/null"])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("there", b"as it was")]


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "source.vocab"])
def test_no_output_overwrites_a_model(tmp_path, name):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_text("{}")
    with pytest.raises(PhraseToolError, match=f"{name}: the output is a file of the model in "):
        check_outputs([], [str(tmp_path / name)])
    check_outputs([], [str(tmp_path / "table.gz")])


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    check_outputs([], [str(tmp_path / "pipe")])
    check_inputs([str(tmp_path / "pipe"), "-", None])


def test_outputs_that_cannot_be_written(tmp_path, monkeypatch):
    for path, message in (
        (tmp_path / "no" / "out", "out: cannot write: there is no folder .*no$"),
        (tmp_path, "is a folder, expected a file name"),
        ("/proc/out", "/proc/out: cannot write: "),
    ):
        with pytest.raises(PhraseToolError, match=message):
            check_outputs([], [str(path)])
    monkeypatch.setattr(streams.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(PhraseToolError, match="out: cannot write: the disk is full"):
        check_outputs([], [str(tmp_path / "out")])


def test_missing_inputs(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    check_inputs([str(tmp_path / "a")])
    for path, message in ((tmp_path / "b", "b: No such file"), (tmp_path, "is a directory")):
        with pytest.raises(PhraseToolError, match=message):
            check_inputs([str(tmp_path / "a"), str(path)])


# The files need not exist: their names are checked before any of them is read.
@pytest.mark.parametrize(
    "command",
    [
        "decode --moses-ini -",
        "decode --moses-ini ini --table - -",
        "tune --moses-ini ini --dev - - -o tuned",
        "tune --moses-ini - --dev - target -o tuned",
        "force-decode --moses-ini ini - - -o pairs",
        "force-decode --moses-ini - source - -o pairs",
        "rescore - --source - --lm lm",
        "rerank - --source - --weights weights",
        "prune table --bitext - - --method significance:a+e",
        "prune table --moses-ini - --forced-pairs - --target-size 0.5 -m model",
        "moses-ini - --table -",
        "align - -",
        "extract - target - -o out",
        "lm - -",
        "evaluate - --reference -",
        "evaluate-model - -",
        "translate - --table -",
        "train classifier - -",
        "evaluate /dev/stdin --reference -",
        "remove-orphans - --reordering-table /dev/fd/0",
        "decode --moses-ini /dev/stdin",
    ],
)
def test_standard_input_for_two_inputs_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run_inside(*command.split(), stdin=b"a text\n")
    expected = "phrasetool: error: only one input can be standard input (see `phrasetool "
    assert (outcome.code, outcome.out, outcome.err.startswith(expected)) == (2, b"", True), outcome.err


# Outputs are checked before the work starts; otherwise, the error would be about the damaged text.
@pytest.mark.parametrize(
    "command",
    [
        ("align", "BAD", "BAD", "-o", "no/out"),
        ("align", "BAD", "BAD", "-o", "out", "--reverse", "no/out"),
        ("extract", "BAD", "BAD", "BAD", "-o", "out", "--lexical", "no/out"),
        ("lm", "BAD", "-o", "no/out"),
        ("decode", "--moses-ini", "INI", "BAD", "-o", "out", "--n-best-list", "no/out", "5"),
        ("force-decode", "--moses-ini", "INI", "BAD", "BAD", "-o", "no/out"),
        ("tune", "--moses-ini", "INI", "--dev", "BAD", "BAD", "-o", "out", "--log", "no/out"),
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_outputs_are_checked_before_the_work(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    bad = write(tmp_path / "bad", b"\x1f\x8brubbish")
    ini = write_experiment(tmp_path / "files").with_name("moses.ini")
    outcome = run_inside(*({"BAD": bad, "INI": ini}.get(argument, argument) for argument in command))
    assert outcome.code == 1
    assert "cannot write: there is no folder no" in outcome.message
    assert sorted(os.listdir(tmp_path)) == ["bad", "files"]


@pytest.mark.parametrize(
    "command",
    [
        ("align", "BAD", "missing", "-o", "out"),
        ("extract", "BAD", "BAD", "missing", "-o", "out"),
        ("lm", "BAD", "missing", "-o", "out"),
        ("decode", "--moses-ini", "INI", "BAD", "--table", "missing", "-o", "out"),
        ("force-decode", "--moses-ini", "INI", "BAD", "missing", "-o", "out"),
        ("tune", "--moses-ini", "INI", "--dev", "BAD", "missing", "-o", "out"),
    ],
    ids=lambda command: command[0],
)
def test_inputs_are_checked_before_the_work(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    bad = write(tmp_path / "bad", b"\x1f\x8brubbish")
    ini = write_experiment(tmp_path / "files").with_name("moses.ini")
    outcome = run_inside(*({"BAD": bad, "INI": ini}.get(argument, argument) for argument in command))
    assert outcome.code == 1
    assert "missing: No such file" in outcome.message


def test_files_that_differ(tmp_path):
    check_outputs([str(tmp_path / "a"), None, "-"], ["-", None, str(tmp_path / "b")])


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["a"], ["a"], "^a: the output is the input a; choose another name$"),
        (["link"], ["b", "a"], "^a: the output is the input link; choose another name$"),
        ([], ["a", "link"], "^link: two outputs go to one file$"),
        ([], ["-", None, "-"], "^-: two outputs go to one file$"),
    ],
)
def test_files_that_are_the_same(tmp_path, monkeypatch, inputs, outputs, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(PhraseToolError, match=message):
        check_outputs(inputs, outputs)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (("tune", "--moses-ini", "moses.ini", "--dev", "dev.src", "dev.trg", "-o"), "lm.arpa"),
        (("tune", "--moses-ini", "moses.ini", "--dev", "dev.src", "dev.trg", "-o", "new", "--log"), "table.gz"),
        (("decode", "--moses-ini", "moses.ini", "dev.src", "--table", "other.gz", "-o"), "table.gz"),
        (("prune", "table.gz", "--moses-ini", "moses.ini", "--method", "top", "-t", "-3", "-o"), "lm.arpa"),
        (("prune", "table.gz", "--moses-ini", "moses.ini", "--method", "top", "-t", "-3", "-o", "new", "--rejected"),
         "lm.arpa"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else value,
)  # fmt: skip
def test_files_that_an_ini_names_are_inputs(tmp_path, monkeypatch, command, output):
    write_experiment(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.gz").write_bytes((tmp_path / "table.gz").read_bytes())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    outcome = run_inside(*command, output)
    assert (outcome.code, f"{output}: the output is the input" in outcome.message) == (1, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_an_ini_may_name_the_table_that_is_pruned_again(tmp_path, monkeypatch):
    write_experiment(tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "small.ini", (tmp_path / "moses.ini").read_bytes().replace(b"=table.gz", b"=small.gz"))
    for _ in range(2):
        options = ("--method", "top", "-t", "-3", "--protect", "none", "-o", "small.gz", "-q")
        assert run_inside("prune", "table.gz", "--moses-ini", "small.ini", *options).code == 0


@pytest.mark.parametrize(
    ("redirected", "message"),
    [
        ("-o - --rejected /dev/stdout < table | cat", "/dev/stdout: two outputs go to one file"),
        ("-o - --rejected out > out < table", "out: two outputs go to one file"),
        ("-o table < table", "table: the output is the input -"),
        ("-o - < table >> table", "-: the output is the input -"),
        ("-o - < table > out", ""),
        ("-o out --rejected /dev/stdout < table | cat > rejected", ""),
        ("-o /dev/null --rejected - < table | cat > rejected", ""),
    ],
)
def test_files_behind_the_standard_streams(tmp_path, redirected, message):
    table = b"a ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 4 4 3\na ||| y ||| 0.6 0.5 0.1 0.5 ||| 0-0 ||| 4 4 1\n"
    write(tmp_path / "table", table)
    command = f"{shlex.join(COMMAND)} prune --similarity-columns 1,3 --scale raw -t 0.51 --protect none -q {redirected}"
    outcome = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, check=False
    )
    assert outcome.returncode == bool(message)
    assert message in outcome.stderr.decode()
    assert (tmp_path / "table").read_bytes() == table
    if not message:
        assert outcome.stderr == b""
        assert not any(path.read_bytes() == b"" for path in tmp_path.iterdir())
