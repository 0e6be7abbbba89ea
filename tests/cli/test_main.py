import gzip
import importlib
import inspect
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import phrasetool_cli.commands
from phrasetool_cli.main import COMMANDS, cli
from tests.commands import COMMAND, clean_environment, run_inside, run_outside, write
from tests.tables import TABLES

TEXT = TABLES["seven fields"]
FOLDER = Path(phrasetool_cli.commands.__file__).parent
BUILT = sorted(path.stem.replace("_", "-") for path in FOLDER.glob("[a-z]*.py"))


def corrupt(data):
    packed = bytearray(gzip.compress(data, mtime=0))
    packed[len(packed) // 2] ^= 0x40
    return bytes(packed)


LINES = [b"das ||| the ||| 0.5 0.25", b"das haus ||| the house ||| 0.5 0.25"]
# Name -> the bytes of the file, and the message after the file name.
BAD_TABLES = {
    "truncated.gz": (gzip.compress(TEXT)[:-20], ": the gzip data end too early"),
    "header-only.gz": (gzip.compress(TEXT)[:5], ": the gzip data"),
    "corrupt.gz": (corrupt(TEXT), ": the gzip data"),
    "placeholder.gz": (b"", ": the file has 0 bytes"),
    "one-field": (b"\n".join([*LINES, b"haus"]), ":3: expected at least 3 fields separated by |||, found 1"),
    "two-fields": (
        b"\n".join([*LINES, b"haus ||| house", b""]),
        ":3: expected at least 3 fields separated by |||, found 2",
    ),
    "blank-line": (b"\n".join([*LINES, b"", *LINES]), ":3: expected at least 3 fields"),
    "no-number": (b"\n".join([*LINES, b"haus ||| house ||| 0.5 0.2x"]), ":3: a score is not a number"),
    "nan": (b"\n".join([*LINES, b"haus ||| house ||| nan 0.5"]), ":3: a score is NaN"),
    "more-scores": (
        b"\n".join([*LINES, b"haus ||| house ||| 1 1 1"]),
        ":3: expected 2 scores as on the lines before, found 3",
    ),
    "fewer-scores": (b"\n".join([*LINES, b"haus ||| house ||| 1 ||| 0-0"]), ":3: expected 2 scores"),
    "no-scores": (b"das ||| the ||| ||| 0-0\n", ":1: expected 1 scores"),
    "half-table": (b"das ||| the ||| 0-0 ||| 0.5 0.25 ||| 10 4 |||\n", ": is half of a phrase table"),
}


def check_bad_table(run, command, name, model_folder, tmp_path):
    data, message = BAD_TABLES[name]
    table, out = tmp_path / name, tmp_path / "out.gz"
    table.write_bytes(data)
    out.write_bytes(b"old")
    rule = ("-t", "0.5", "--rejected", tmp_path / "rejected") if command == "prune" else ()
    # -q, because a slow machine would report progress.
    outcome = run(command, table, "-m", model_folder, "-o", out, "--block-bytes", "64", "-q", *rule)
    assert outcome.code == 1
    assert outcome.out == b""
    assert outcome.message.startswith(f"phrasetool: {table}{message}")
    assert out.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == sorted([name, "out.gz"])


@pytest.mark.parametrize("command", ["prune", "annotate"])
@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_table(model_folder, tmp_path, command, name):
    check_bad_table(run_inside, command, name, model_folder, tmp_path)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("prune", "truncated.gz"),
        ("annotate", "corrupt.gz"),
        ("prune", "two-fields"),
        ("annotate", "nan"),
        ("prune", "placeholder.gz"),
    ],
)
def test_bad_table_in_a_process(model_folder, tmp_path, command, name):
    check_bad_table(run_outside, command, name, model_folder, tmp_path)


@pytest.mark.parametrize("name", ["truncated.gz", "corrupt.gz", "two-fields"])
def test_bad_standard_input(model_folder, tmp_path, name):
    data, message = BAD_TABLES[name]
    outcome = run_inside("prune", "-m", model_folder, "-t", "0.5", "-o", tmp_path / "out", stdin=data)
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: standard input{message}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("command", ["prune", "annotate"])
def test_missing_files(model_folder, tmp_path, command):
    rule = ("-t", "0.5") if command == "prune" else ()
    outcome = run_inside(command, tmp_path / "none", "-m", model_folder, "-o", tmp_path / "o", *rule)
    assert outcome.code == 1
    assert outcome.message == f"phrasetool: {tmp_path / 'none'}: No such file or directory"
    table = write(tmp_path / "t", TEXT)
    outcome = run_inside(command, table, "-m", tmp_path / "model", "-o", tmp_path / "o", *rule)
    assert outcome.code == 1
    assert f"{tmp_path / 'model'}: no such model folder" in outcome.message
    outcome = run_inside(command, table, "-m", model_folder, "-o", tmp_path / "no" / "o", *rule)
    assert outcome.code == 1
    assert str(tmp_path / "no" / "o") in outcome.message
    assert os.listdir(tmp_path) == ["t"]


def test_no_model_named(tmp_path):
    write(tmp_path / "t", TEXT)
    outcome = run_outside("prune", "t", "-t", "0", "-o", "o", cwd=tmp_path)
    assert outcome.code == 1
    assert "phrasetool-model: no such model folder" in outcome.message
    assert os.listdir(tmp_path) == ["t"]


def test_model_of_another_version(model_folder, tmp_path):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    config = (folder / "config.json").read_text().replace('"format_version": 1', '"format_version": 2')
    (folder / "config.json").write_text(config)
    outcome = run_outside("annotate", write(tmp_path / "t", TEXT), "-m", folder, "-o", tmp_path / "o")
    assert outcome.code == 1
    assert f"{folder / 'config.json'}: format version 2" in outcome.message
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("link", [False, True])
def test_output_over_the_input(model_folder, tmp_path, link):
    table = write(tmp_path / "t", TEXT)
    (tmp_path / "link").symlink_to(table)
    outcome = run_inside("annotate", table, "-m", model_folder, "-o", tmp_path / "link" if link else table)
    assert outcome.code == 1
    assert "the output is the input" in outcome.message
    assert table.read_bytes() == TEXT


@pytest.mark.parametrize("command", ["prune", "annotate"])
def test_on_error_counts(model_folder, tmp_path, command):
    table = write(tmp_path / "t", b"\n".join([*LINES, b"bad", b"das ||| x ||| nan 1", b""]))
    rule = ("-t", "-1") if command == "prune" else ()
    for action, lines in (("skip", 2), ("keep", 4)):
        outcome = run_inside(command, table, "-m", model_folder, "-o", "-", "--on-error", action, *rule)
        assert outcome.code == 0
        assert outcome.out.count(b"\n") == lines
        assert "2 malformed lines" in outcome.err


def start_command(*arguments):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )


@pytest.mark.parametrize("command", ["prune", "annotate"])
def test_interrupt(model_folder, tmp_path, command):
    out = tmp_path / "out.gz"
    out.write_bytes(b"old")
    rule = ("-t", "0.5") if command == "prune" else ()
    process = start_command(command, "-", "-m", model_folder, "-o", out, "--block-bytes", 1000, "-q", *rule)
    # A pipe holds 64 KB; once more than that is written, the command is reading the table.
    process.stdin.write(TEXT * 40)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    # A terminal shows ^C, hence the line feed before the message.
    assert err.decode().strip() == "phrasetool: interrupted"
    assert out.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.gz"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize("arguments", [("prune", "-t", "-1"), ("annotate",)], ids=" ".join)
def test_full_disk(model_folder, tmp_path, arguments, size):
    table = write(tmp_path / "t", TEXT * size)
    outcome = run_inside(*arguments, table, "-m", model_folder, "--force", "-q", "-o", "/dev/full")
    assert outcome.code == 1
    assert "/dev/full: cannot write: the disk is full" in outcome.err.splitlines()[-1]
    assert os.listdir(tmp_path) == ["t"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize("arguments", [("-t", "-1"), ("--sweep", "0:1:0.5")], ids=" ".join)
def test_full_disk_behind_standard_output(model_folder, tmp_path, arguments, size):
    table = write(tmp_path / "t", TEXT * size)
    with open("/dev/full", "wb") as full:
        outcome = subprocess.run(
            [*COMMAND, "prune", str(table), "-m", str(model_folder), "-q", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    err = outcome.stderr.decode()
    assert outcome.returncode == 1
    assert len(err.splitlines()) == 1
    assert err.startswith("phrasetool: ")
    assert "no space" in err.lower() or "full" in err


@pytest.mark.parametrize("size", [1, 200])
def test_a_pipe_that_its_reader_closes(model_folder, tmp_path, size):
    table = write(tmp_path / "t", TEXT * size)
    process = start_command("annotate", table, "-m", model_folder, "-o", "-", "-q", "--block-bytes", 3000)
    assert process.stdout.readline().startswith(TEXT[:1])
    process.stdout.close()
    process.stdin.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) in (0, 1)
    assert err == ""


def test_a_pipe_without_a_reader(model_folder, tmp_path):
    table = write(tmp_path / "t", TEXT)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        outcome = subprocess.run(
            [*COMMAND, "prune", str(table), "-m", str(model_folder), "-q", "-t", "-1"],
            stdout=out,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    assert outcome.stderr == b""
    assert outcome.returncode in (0, 1)


def test_no_command_and_wrong_commands():
    assert run_inside("no-such-command").code == 2
    assert run_inside("--no-such-option").code == 2
    assert run_inside("annotate").code == 2
    assert run_inside().code == 2


def test_overview_lists_every_command():
    outcome = run_inside("--help")
    assert outcome.code == 0
    text = " ".join(outcome.out.decode().split())
    assert all(f" {name} {summary}" in text for name, summary in COMMANDS.items())


def test_overview_and_help_are_one_text():
    for name in BUILT:
        command = importlib.import_module(f"phrasetool_cli.commands.{name.replace('-', '_')}").command
        assert inspect.cleandoc(command.help).splitlines()[0] == COMMANDS[name]


def test_every_default_is_shown_once():
    for name in BUILT:
        with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
            command = cli.get_command(overview, name)
            with click.Context(command, parent=overview) as context:
                for option in command.get_params(context):
                    if not isinstance(option, click.Option) or option.hidden or option.is_flag:
                        continue
                    shown = option.get_help_record(context)[1].count("[default: ")
                    has_default = isinstance(option.default, str | int | float) and option.default != ""
                    if has_default or inspect.isfunction(option.default):
                        assert shown == 1, (name, option.opts)


def test_every_command_is_built():
    assert sorted(COMMANDS) == BUILT


@pytest.mark.parametrize("name", BUILT)
def test_help_of_a_command(name):
    outcome = run_inside(name, "--help")
    text = outcome.out.decode()
    assert (outcome.code, outcome.err) == (0, "")
    if name != "filter-pt":  # its -h is the option of Moses' filter-pt
        assert text == run_inside(name, "-h").out.decode()
    assert text.startswith(f"Usage: phrasetool {name}")
    _, example, tail = text.partition("Example:\n")
    assert example
    assert tail.split()[:2] == ["phrasetool", name]
    # Commands that are wider than the terminal continue on the next line.
    assert text.rstrip().replace("\\\n", "").splitlines()[-1].strip().startswith("phrasetool ")


def loaded(folder, *command_lines):
    """Run commands in one process; return the heavy packages that are loaded after each command."""
    code = (
        "import json, sys\nfrom phrasetool_cli.main import main\nreport, lines = sys.argv[1], json.loads(sys.argv[2])\n"
        "with open(report, 'w') as file:\n    for line in lines:\n"
        "        try:\n            main(line)\n"
        "        except SystemExit as end:\n            assert not end.code, line\n"
        "        print(*{name.split('.')[0] for name in sys.modules}, file=file)\n"
    )
    lines = json.dumps([[str(argument) for argument in line] for line in command_lines])
    outcome = subprocess.run(
        [sys.executable, "-c", code, folder / "report", lines],
        env=clean_environment(),
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    heavy = {"numba", "numpy", "torch", "pyarrow", "gensim", "matplotlib", "scipy"}
    result = [heavy & set(line.split()) for line in (folder / "report").read_text("utf-8").splitlines()]
    return dict(zip(command_lines, result, strict=True))


def test_version_and_help_load_nothing_heavy(tmp_path):
    result = loaded(tmp_path, ("--help",), ("--version",), *((name, "--help") for name in BUILT))
    assert {line: packages for line, packages in result.items() if packages} == {}


def test_prune_and_annotate_do_without_torch(model_folder, tmp_path):
    table = write(tmp_path / "t", TEXT)
    options = (table, "-m", model_folder, "-q", "-o", tmp_path / "o")
    lines = (("prune", "--target-size", "0.9", "--keep-top", "0", *options), ("annotate", *options))
    for packages in loaded(tmp_path, *lines).values():
        assert "numpy" in packages
        assert packages.isdisjoint({"torch", "gensim", "matplotlib"})


def test_debug_shows_a_traceback(tmp_path):
    outcome = run_inside("--debug", "prune", tmp_path / "none", "-t", "0.5", "--similarity-columns", "1,2")
    assert outcome.code == 1
    assert "Traceback" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("phrasetool: ")


def test_the_console_script(model_folder, tmp_path):
    script = os.path.join(os.path.dirname(sys.executable), "phrasetool")
    if not os.path.exists(script):
        pytest.skip("the console script is not installed beside this interpreter")
    table = write(tmp_path / "t", TABLES["lattice"])
    outcome = subprocess.run(
        [script, "prune", "-q", "-t", "-1", "-m", str(model_folder), str(table)],
        capture_output=True,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, TABLES["lattice"], b"")
    # The table from standard input, and the model from the environment.
    outcome = subprocess.run(
        [script, "prune", "-q", "-t", "-1"],
        capture_output=True,
        input=gzip.compress(TEXT),
        timeout=60,
        env=clean_environment(PHRASETOOL_MODEL=str(model_folder)),
        check=False,
    )
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, TEXT, b"")


def test_folders_and_names_with_odd_characters(model_folder, tmp_path):
    folder = tmp_path / "a b ||| \u00fc"
    folder.mkdir()
    table = write(folder / "t\u00e4ble.gz", TEXT)
    assert run_inside("annotate", table, "-m", model_folder, "-q").code == 0
    assert sorted(os.listdir(folder)) == sorted(["t\u00e4ble.gz", "t\u00e4ble.annotated.gz"])


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a  b", "a  b"), (" a ", " a "), ("a\u3000b", "a\u3000b"), ("a \n b", "a b"), ("a\t\x1b[1m\x85b", "a [1m b")],
)
def test_messages_keep_the_spaces_of_names_but_are_one_line(tmp_path, monkeypatch, name, shown):
    monkeypatch.chdir(tmp_path)
    assert run_inside("inspect", name).err == f"phrasetool: error: {shown}: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prnue",), "unknown command 'prnue'; did you mean prune? (see `phrasetool --help`)"),
        (("xyzzy",), "unknown command 'xyzzy' (see `phrasetool --help`)"),
        (("prune", "--treshold", "1"), "No such option '--treshold'."),
        (("--no-such", "prune"), "No such option '--no-such'."),
        (("annotate",), "Missing argument 'TABLE'. (see `phrasetool annotate --help`)"),
        (("decode", "--threads", "0"), "Invalid value for '--threads'"),
        (
            ("prune", "t", "-t", "0", "--target-size", "1"),
            "give one of --threshold, --target-size, --max-bleu-loss and --sweep, not both --threshold and "
            "--target-size",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments, message):
    outcome = run_inside(*arguments)
    assert outcome.code == 2
    assert outcome.message.startswith(f"phrasetool: {message}")
    assert "--help`)" in outcome.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ImportError("/x/period.so: failed to map segment from shared object"),
            "no memory is left to load a package: /x/period.so",
        ),
        (SystemError("<function _find_and_load> returned NULL without setting an exception"), "no memory is left"),
        (
            RuntimeError("can't start new thread"),
            "no thread can be started: memory (ulimit -v) or processes (ulimit -u) are limited",
        ),
    ],
)
def test_errors_caused_by_a_lack_of_memory(tmp_path, monkeypatch, error, message):
    import phrasetool_cli.main as main

    def load(*arguments, **options):
        raise error

    monkeypatch.setattr(main.cli, "main", load)
    assert run_inside("inspect", tmp_path).message == f"phrasetool: {message}"


@pytest.mark.parametrize(("limit", "code"), [(511 << 20, 1), (4 << 30, 0)])
def test_a_small_limit_on_memory_is_refused(tmp_path, limit, code):
    """With less memory, Python may deadlock on its import lock."""
    (tmp_path / "table").write_text("a ||| b ||| 0.5 0.5 0.5 0.5 ||| ||| 1 1 1\n")
    outcome = subprocess.run(
        [*COMMAND, "inspect", str(tmp_path / "table")], capture_output=True, text=True, env=clean_environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)), check=False,
    )  # fmt: skip
    assert outcome.returncode == code, outcome.stderr
    if code:
        message = "phrasetool: error: the limit on memory (ulimit -v) is 511 MB, and at least 512 MB are needed\n"
        assert outcome.stderr == message
