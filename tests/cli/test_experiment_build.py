"""Steps that make what is missing: done once, again when something before them changed, side by side."""

import json
import shutil
import sys
import time

import pytest

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared import experiment_build
from phrasetool_cli.shared.experiment_build import Builder, Step, shown

# Instead of phrasetool's commands: join files into the last one; `wait` needs the other of two to be there, too.
_JOIN = """
import os, sys, time
names = [name for name in sys.argv[1:] if not name.startswith("--") and not name.isdigit()]
if names[0] == "fail":
    sys.exit("phrasetool: first\\nphrasetool: it cannot be")
if names[0] == "wait":
    open(names[1] + ".began", "w").close()
    for _ in range(1000):
        if os.path.exists(names[2] + ".began"):
            break
        time.sleep(0.01)
    names = [names[0], names[1]]
with open(names[-1], "a") as out:
    out.write(names[0] + "".join(open(name).read() for name in names[1:-1]) + " ".join(sys.argv[-1:]))
"""


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    monkeypatch.setattr(experiment_build, "_RUN", [sys.executable, "-c", _JOIN])


def steps(folder, build, word="x"):
    first, second = str(build / "first"), str(build / "second")
    return [
        Step("first", (word, str(folder / "input"), first), ("first",)),
        Step("second", ("y", first, second), ("second",), ("first",), threads=False),
        Step("third", ("z", second, str(build / "third")), ("third",), ("second",), threads=False, anchored=True),
    ]


def done(folder, build, word="x"):
    """Which steps ran."""
    before = {path.name: path.read_text() for path in build.glob("*") if path.suffix != ".json"}
    Builder(str(build), 2, True).run(steps(folder, build, word))
    return {name for name in ("first", "second", "third") if (build / name).read_text() != before.get(name)}


def test_a_step_is_done_once(tmp_path):
    (tmp_path / "input").write_text("a")
    build = tmp_path / "build"
    assert done(tmp_path, build) == {"first", "second", "third"}
    assert done(tmp_path, build) == set()
    record = json.loads((build / "commands.json").read_text())
    assert record["second"]["command"] == f"phrasetool y {shown(f'{build}/first')} {shown(f'{build}/second')}"
    # Another output that is gone, another command, another file from elsewhere.
    (build / "second").unlink()
    assert done(tmp_path, build) == {"second"}
    assert done(tmp_path, build, "w") == {"first", "second", "third"}
    (tmp_path / "input").write_text("b")
    assert done(tmp_path, build, "w") == {"first", "second", "third"}
    # Where files are does not count, but for what names them by their place.
    shutil.copytree(build, tmp_path / "elsewhere")
    shutil.copy(tmp_path / "input", tmp_path / "elsewhere")
    assert done(tmp_path / "elsewhere", tmp_path / "elsewhere", "w") == {"third"}


def test_a_record_that_is_damaged_is_none(tmp_path):
    (tmp_path / "input").write_text("a")
    build = tmp_path / "build"
    done(tmp_path, build)
    (build / "commands.json").write_text("[")
    assert done(tmp_path, build) == {"first", "second", "third"}


def test_steps_run_side_by_side(tmp_path):
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    Builder(str(tmp_path), 2, True).run([
        Step("one", ("wait", one, other), ("one",), threads=False),
        Step("other", ("wait", other, one), ("other",), threads=False),
    ])  # fmt: skip
    assert (tmp_path / "one").exists()
    assert (tmp_path / "other").exists()


def test_a_failure_is_told_and_ends_the_others(tmp_path, capsys):
    began = time.monotonic()
    with pytest.raises(PhraseToolError, match=r"^it cannot be \(step bad\)$"):
        Builder(str(tmp_path), 2, False).run([
            Step("bad", ("fail",), ("bad",), threads=False),
            Step("slow", ("wait", str(tmp_path / "slow"), str(tmp_path / "never")), ("slow",), threads=False),
            Step("after", ("x", str(tmp_path / "bad"), str(tmp_path / "after")), ("after",), ("bad",)),
        ])  # fmt: skip
    assert time.monotonic() - began < 8
    assert "phrasetool: bad: first\n" in capsys.readouterr().err
    assert not (tmp_path / "slow").exists()
    record = json.loads((tmp_path / "commands.json").read_text())
    assert not record["bad"]["done"]
    assert "after" not in record


def test_training_goes_on(tmp_path):
    """A step that was interrupted by the same command gets `--resume`, if there is a checkpoint."""
    (tmp_path / "model").mkdir()
    step = Step("train", ("t", str(tmp_path / "model" / "config.json")), ("model/config.json",), threads=False,
                resumes=str(tmp_path / "model"))  # fmt: skip
    builder = Builder(str(tmp_path), 1, True)
    (tmp_path / "model" / "checkpoint.safetensors").write_text("")
    builder.run([step])
    output = tmp_path / "model" / "config.json"
    assert not output.read_text().endswith("--resume")
    record = json.loads((tmp_path / "commands.json").read_text())
    record["train"]["done"] = False
    (tmp_path / "commands.json").write_text(json.dumps(record))
    Builder(str(tmp_path), 1, True).run([step])
    assert output.read_text().endswith("--resume")


def test_paths_are_shown_as_somebody_here_would_write_them(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown(str(tmp_path / "there" / "a.gz")) == "../there/a.gz"
    assert shown(str(tmp_path / "here" / "a.gz")) == "a.gz"
    assert shown("/elsewhere/a.gz") == "/elsewhere/a.gz"
    assert [shown(text) for text in ("--stack", "b/c", "")] == ["--stack", "b/c", ""]
