"""Commands whose standard streams are closed or full, or whose terminal supports few characters."""

import gzip
import json
import os
import re
import shlex
import subprocess

import pytest

from tests.commands import COMMAND, clean_environment, run_outside, write
from tests.tables import TABLES

TEXT = TABLES["seven fields"]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", TEXT)


def shell(table, model_folder, arguments, redirections, **changes):
    """Run a command with redirections of `sh`; `T` stands for the table, `M` for the model."""
    words = [{"T": str(table), "M": str(model_folder)}.get(word, word) for word in arguments.split()]
    return subprocess.run(
        ["sh", "-c", f"{shlex.join([*COMMAND, *words])} {redirections}"],
        cwd=table.parent,
        env=clean_environment(**changes),
        capture_output=True,
        timeout=60,
        check=False,
    )


PRUNE = "prune -t -1 -m M T"


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_output_to_a_redirected_stream_keeps_the_rest_of_its_file(table, name):
    folder = table.parent
    write(folder / "text", b"a b\n" * 20)
    command = shlex.join([*COMMAND, "lm", "text", "--order", "1", "-q", "-o"])
    script = f"{{ echo head; {command} {name}; echo tail; {command} model --json {name}; }} > f"
    subprocess.run(["sh", "-c", script], cwd=folder, env=clean_environment(), check=True)
    expected = b"head\n" + (folder / "model").read_bytes() + b"tail\n{"
    head, brace, document = (folder / "f").read_bytes().partition(b"{")
    assert head + brace == expected
    assert json.loads(brace + document)["schema_version"] == 1


@pytest.mark.parametrize(
    ("arguments", "redirections"),
    [
        (f"{PRUNE} -o out", "<&- >&- 2>&-"),
        (f"{PRUNE} -o out", ">&-"),
        pytest.param(f"{PRUNE} -o out", "2>/dev/full", marks=needs_full),
        ("annotate T -m M -o out", "2>&-"),
    ],
)
def test_streams_that_are_not_needed(table, model_folder, arguments, redirections):
    outcome = shell(table, model_folder, arguments, redirections)
    assert outcome.returncode == 0
    assert outcome.stdout == b""
    assert gzip.decompress(table.read_bytes()) == TEXT
    out = (table.parent / "out").read_bytes()
    assert out.count(b"\n") == TEXT.count(b"\n")
    assert b"phrasetool: " not in out


@pytest.mark.parametrize(
    ("arguments", "redirections", "code", "message"),
    [
        (PRUNE + " -q", ">&-", 1, "standard output: cannot write: Bad file descriptor"),
        ("prune -t -1 -m M -q", "<&-", 1, "standard input: Bad file descriptor"),
        ("inspect T", ">&-", 1, "standard output: Bad file descriptor"),
        pytest.param("inspect T", ">/dev/full", 1, "standard output: the disk is full", marks=needs_full),
        ("--help", ">&-", 1, "standard output: Bad file descriptor"),
        ("inspect nothing", "2>&-", 1, None),
        pytest.param("inspect nothing", "2>/dev/full", 1, None, marks=needs_full),
        ("inspect --nothing", "2>&-", 2, None),
    ],
)
def test_streams_that_are_needed(table, model_folder, arguments, redirections, code, message):
    outcome = shell(table, model_folder, arguments, redirections)
    assert outcome.returncode == code
    assert outcome.stdout == b""
    assert outcome.stderr.decode() == (f"phrasetool: error: {message}\n" if message else "")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_terminals_that_support_few_characters(table, model_folder, tmp_path, environment):
    named = table.rename(tmp_path / "\u65e5.gz")
    for arguments in ("inspect T", "prune -m M T --sweep 0:1:0.5"):
        outcome = shell(named, model_folder, arguments, "", **environment)
        assert outcome.returncode == 0, outcome.stderr
        assert b"Traceback" not in outcome.stderr
        assert outcome.stdout


def test_unsupported_characters_are_printed_with_backslashes(table, model_folder, tmp_path):
    named = table.rename(tmp_path / "\u65e5.gz")
    result = shell(named, model_folder, "inspect T", "", PYTHONIOENCODING="cp1252")
    assert b"/\\u65e5.gz: phrase table" in result.stdout


def test_a_file_name_that_is_not_utf8_is_printed_unchanged(table, model_folder):
    name = os.fsdecode(b"\xff.gz")
    table.rename(table.parent / name)
    outcome = shell(table.parent / name, model_folder, "inspect T", "", PYTHONUTF8="1")
    assert outcome.returncode == 0
    assert b"/\xff.gz" in outcome.stdout


def test_the_longest_file_names(table, model_folder):
    for name in ("n" * 252 + ".gz", "\u65e5" * 84 + ".gz"):
        assert run_outside("prune", "-q", "-t", "-1", "-m", model_folder, table, "-o", table.parent / name).code == 0
        assert (table.parent / name).exists()
    outcome = run_outside("prune", "-q", "-t", "-1", "-m", model_folder, table, "-o", table.parent / ("n" * 256))
    assert outcome.code == 1
    assert outcome.message.endswith(": cannot write: File name too long")


def test_pipes_are_read_once(table, model_folder):
    for arguments, code in (("inspect", 0), ("convert -o out.parquet", 0), ("prune -q -t -1 -o out -m M", 0)):
        outcome = piped(table, model_folder, arguments)
        assert outcome.returncode == code, outcome.stderr
    assert (table.parent / "out").read_bytes() == TEXT
    outcome = piped(table, model_folder, "prune -q --target-size 0.5 --keep-top 0 --protect none -m M -o new")
    assert outcome.returncode == 1
    assert (
        outcome.stderr.decode()
        == "phrasetool: error: fifo: is a pipe, was read already and has to be read again; expected a file\n"
    )
    assert not (table.parent / "new").exists()


def piped(table, model_folder, arguments):
    fifo = table.parent / "fifo"
    if not fifo.exists():
        os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", f"exec cat {shlex.quote(str(table))} > fifo"], cwd=table.parent)
    try:
        return shell(table, model_folder, f"{arguments} fifo", "")
    finally:
        writer.kill()
        writer.wait()


def test_a_byte_order_mark_is_reported_once(table, model_folder):
    table.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TEXT))
    outcome = shell(table, model_folder, "prune --target-size 1 --keep-top 0 -m M -q T", "")
    assert outcome.returncode == 0
    assert outcome.stdout[:5] == TEXT[:5]
    assert outcome.stderr.decode() == f"phrasetool: warning: {table}: a byte order mark at its start was left out\n"


def first_line_of(*arguments):
    """Run `phrasetool ... | head -n 1` with `pipefail`."""
    line = f"set -o pipefail; {shlex.join([*COMMAND, *map(str, arguments), '-q'])} | head -n 1"
    return subprocess.run(["bash", "-c", line], env=clean_environment(), capture_output=True, text=True, check=False)


def test_a_reader_that_closes_the_pipe_early_is_no_error(tmp_path):
    """It is an error only if another output is not written for this reason."""
    lines = [b"w%06d ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" % i for i in range(200_000)]
    table = write(tmp_path / "table", b"".join(lines))
    plain = first_line_of("threshold-filter", "0:0.1", table)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, lines[0].decode(), "")
    both = first_line_of("prune", table, "--similarity-columns", "1,2", "-t", "0", "--rejected", tmp_path / "gone")
    assert (both.returncode, both.stdout) == (1, lines[0].decode())
    assert both.stderr.endswith("gone was not written\n")
    outputs = ("--rejected", tmp_path / "gone", "--reasons", tmp_path / "why")
    several = first_line_of("prune", table, "--similarity-columns", "1,2", "-t", "0", *outputs)
    assert re.search(r"(/gone and .*/why|/why and .*/gone) were not written\n$", several.stderr), several.stderr
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "prune --help", "inspect T", "threshold-filter 3:1e-9 T -q"]
)
def test_a_pipe_without_a_reader_is_no_error(table, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    words = [{"T": str(table)}.get(word, word) for word in arguments.split()]
    with open(writing, "wb") as pipe:
        outcome = subprocess.run([*COMMAND, *words], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
