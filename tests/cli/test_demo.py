"""The files of the demo; `make demo` runs all of its steps."""

import re
import shlex
import shutil
import subprocess

import click
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool_cli.commands import demo as steps
from phrasetool_cli.main import cli
from tests.commands import run_inside
from tests.test_documents import ROOT


def test_the_suggested_commands_work(demo_files, monkeypatch):
    monkeypatch.chdir(demo_files)
    lines = [line.strip() for line in steps._NEXT.format("demo").splitlines() if line.startswith("  phrasetool ")]
    # The last command is for a user's own model.
    *lines, own = lines
    assert len(lines) == 3
    assert own.startswith("phrasetool improve ")
    for line in lines:
        words = shlex.split(line.partition("|")[0])[1:]
        outcome = run_inside(*words)
        assert outcome.code == 0, outcome.err


def examples_of(command, context):
    """Yield the examples in the help of a command and of its subcommands."""
    yield (command.epilog or "").replace("\\\n", " ")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            yield from examples_of(subcommand, click.Context(subcommand, parent=context))


def test_examples_name_files_that_exist(demo_files):
    """A file that an example names is written by the demo or an example, or belongs to the repository."""
    files = {f"demo-output/{path.relative_to(demo_files / 'demo')}" for path in (demo_files / "demo").rglob("*")}
    # Only the whole demo writes these.
    files |= {f"demo-output/{name}" for name in re.findall(r"[a-z][\w-]*(?:\.\w+)+", steps._MADE)}
    # In Moses, names of tables lack the suffix.
    files |= {name.removesuffix(".gz") for name in files}
    with click.Context(cli) as context:
        text = "\n".join(examples_of(cli, context))
    text = re.sub(r"(\S+){zh,en}", r"\1zh \1en", text)
    files |= set(re.findall(r"(?:-o|>) (demo-output/\S+)", text))
    named = set(re.findall(r"(?<!\S)(?:demo-output|examples)/\S+", text))
    assert len(named) > 20
    assert [name for name in named - files if name.startswith("demo-output") or not (ROOT / name).exists()] == []


def test_both_readmes_name_files_that_exist(demo_files):
    written = {path.name for path in (demo_files / "demo").rglob("*")}
    names = re.findall(r"[\w-]+\.(?:gz|ini|zh|en)\b", (demo_files / "demo" / steps.README).read_text())
    assert "corpus.en" in names
    assert written.issuperset(names)
    table = re.findall(r"(?m)^\| (`.*?) \|", (steps.FILES / "README.md").read_text(encoding="utf-8"))
    assert table
    for name in re.findall("`(.*?)`", " ".join(table)):
        assert (steps.FILES / name).exists(), name


def test_a_folder_of_the_demo_is_replaced_but_no_other(demo_files, tmp_path):
    # Change a copy, because other tests read the fixture's files.
    copy = shutil.copytree(demo_files / "demo", tmp_path / "demo")
    steps.prepare(copy)
    assert not (copy / "engine" / "moses.ini").exists()
    assert (demo_files / "demo" / "engine" / "moses.ini").exists()
    (tmp_path / "thesis").write_text("x")
    with pytest.raises(PhraseToolError, match="exists and is not a folder that the demo made"):
        steps.prepare(tmp_path)
    assert (tmp_path / "thesis").read_text() == "x"
    outcome = run_inside("demo", "--files", tmp_path / "thesis")
    assert (outcome.code, outcome.message[:11]) == (1, "phrasetool:")


@pytest.mark.parametrize("error", [SystemExit(143), KeyboardInterrupt()])
def test_an_interrupted_command_is_terminated_and_not_killed(tmp_path, monkeypatch, error):
    """A killed `align` would leave the aligner running."""
    calls = []

    class Process:
        def __init__(self, command, **settings):
            self.results = [error, subprocess.TimeoutExpired(command, 0), 143]

        def wait(self, timeout=None):
            calls.append("wait")
            if isinstance(result := self.results.pop(0), BaseException):
                raise result
            return result

        def terminate(self):
            calls.append("terminate")

    monkeypatch.setattr(steps.subprocess, "Popen", Process)
    with pytest.raises(type(error)):
        steps.Demo(tmp_path).run("align", "a", "b")
    assert calls == ["wait", "wait", "terminate", "wait"]


def test_missing_packages_are_detected():
    assert steps.has("numpy", "click")
    assert not steps.has("numpy", "no_such_package")
