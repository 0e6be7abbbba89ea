"""`--resume` of commands that write tables: killed at any moment, they go on to the same bytes."""

import os
import signal
import subprocess
import time

import pytest

from tests.commands import COMMAND, clean_environment, run_inside, write
from tests.tables import TABLES

DATA = TABLES["seven fields"]
COLUMNS = ("--columns", "2,4", "--scale", "raw")


@pytest.mark.parametrize("arguments", [("prune", "-t", "0.5", *COLUMNS), ("annotate", "--smoothing", "kneser-ney")])
def test_it_needs_files(tmp_path, arguments):
    table = write(tmp_path / "t", DATA)
    for places in ((table, "-o", "-"), ("-", "-o", tmp_path / "out")):
        done = run_inside(*arguments, *places, "--resume")
        assert done.code == 2
    assert "--resume keeps what is finished beside the output; give files for TABLE and -o" in done.err or (
        "reads the table twice" in done.err
    )
    assert not list(tmp_path.glob("*.unfinished"))


def large_table(folder):
    """Some megabytes whose words differ from source to source."""
    lines = [
        f"w{i:06} a ||| v{i:06} {j} ||| 0.5 0.{j}5 0.5 0.{9 - j}1 ||| 0-0 ||| 2 2 {1 + j % 2}\n"
        for i in range(20000) for j in range(4)
    ]  # fmt: skip
    return write(folder / "table.gz", "".join(lines).encode())


@pytest.mark.parametrize("threads", [1, 2])
def test_killed_at_any_moment(tmp_path, threads):
    """What is there after each kill is nothing or all; the last run leaves the bytes of one that was never killed."""
    table = large_table(tmp_path)
    arguments = ["prune", str(table), "-t", "0.6", *COLUMNS, "--keep-top", "1", "--block-bytes", "65536", "-q"]
    plain, out = tmp_path / "plain.gz", tmp_path / "out.gz"
    assert run_inside(*arguments, "-o", plain).code == 0
    resumed = [*COMMAND, *arguments, "-o", str(out), "--resume", "--threads", str(threads)]
    for milliseconds in (150, 300, 450, 600, 750):
        process = subprocess.Popen(resumed, env=clean_environment(), stderr=subprocess.PIPE)
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            out.unlink()
        assert not out.exists() or out.read_bytes() == plain.read_bytes()
    done = subprocess.run(resumed, env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == plain.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["out.gz", "plain.gz", "table.gz"]


def test_other_options_are_another_run(tmp_path):
    table = write(tmp_path / "t", DATA)
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished" / "settings.json").write_text("{}")
    done = run_inside("prune", table, "-t", "0.5", *COLUMNS, "-o", tmp_path / "out", "--resume")
    assert done.code == 1
    assert "out.unfinished: is of another run: " in done.err
    assert not (tmp_path / "out").exists()
