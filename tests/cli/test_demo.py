"""The files of the demo; `make demo` runs all of its steps."""

import shlex
import shutil

import pytest

from phrasetool.errors import PhraseToolError
from phrasetool_cli.commands import demo as steps
from tests.commands import run_inside


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


def test_missing_packages_are_detected():
    assert steps.has("numpy", "click")
    assert not steps.has("numpy", "no_such_package")
