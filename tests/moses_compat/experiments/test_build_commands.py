"""Build commands: run once, again if an input or an earlier command changes, and two at a time."""

import json
import shutil
import sys

import pytest

from moses_compat.experiments.build_commands import (
    FORCE,
    BuildCommand,
    BuildStore,
    CommandRunner,
    former_arguments,
    shown_path,
)
from phrasetool.errors import PhraseToolError

# In place of phrasetool's commands: joins files into the last one; `wait` waits until another command has begun.
_JOIN = """
import os, sys, time
names = [name for name in sys.argv[1:] if not name.startswith("--") and not name.isdigit()]
if names[0] == "fail":
    sys.exit("phrasetool: first\\nphrasetool: error: it cannot be")
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


PROGRAM = [sys.executable, "-c", _JOIN]


def make(folder, *chains, threads=2, say=lambda message: None):
    CommandRunner(BuildStore(str(folder)), PROGRAM, threads, say).make(chains)


def commands(folder, build, word="x"):
    first, second = str(build / "first"), str(build / "second")
    first_command = BuildCommand("first", (word, str(folder / "input"), first), ("first",))
    second_command = BuildCommand("second", ("y", first, second), ("second",), (first_command,), threads=False)
    third_arguments = ("z", second, str(build / "third"))
    return [
        first_command,
        second_command,
        BuildCommand("third", third_arguments, ("third",), (second_command,), threads=False, anchored=True),
    ]


def done(folder, build, word="x"):
    """Run the commands and return the names of those that were not reused."""
    build.mkdir(exist_ok=True)
    before = {path.name: path.read_text() for path in build.glob("*") if path.suffix != ".json"}
    make(build, commands(folder, build, word))
    return {name for name in ("first", "second", "third") if (build / name).read_text() != before.get(name)}


def test_a_command_is_done_once(tmp_path):
    (tmp_path / "input").write_text("a")
    build = tmp_path / "build"
    assert done(tmp_path, build) == {"first", "second", "third"}
    assert done(tmp_path, build) == set()
    record = json.loads((build / "commands.json").read_text())
    assert record["second"]["command"] == f"phrasetool y {shown_path(f'{build}/first')} {shown_path(f'{build}/second')}"
    # An output is missing, a command changes, an input file changes.
    (build / "second").unlink()
    assert done(tmp_path, build) == {"second"}
    assert done(tmp_path, build, "w") == {"first", "second", "third"}
    (tmp_path / "input").write_text("b")
    assert done(tmp_path, build, "w") == {"first", "second", "third"}
    # The location of files does not matter, except for outputs that contain absolute paths.
    shutil.copytree(build, tmp_path / "elsewhere")
    shutil.copy(tmp_path / "input", tmp_path / "elsewhere")
    assert done(tmp_path / "elsewhere", tmp_path / "elsewhere", "w") == {"third"}


def test_a_command_depends_on_the_files_of_its_ini(tmp_path):
    ini, model, output = (tmp_path / name for name in ("moses.ini", "lm.arpa", "decoded"))
    ini.write_text("names lm.arpa")
    decode = BuildCommand("decode", ("x", str(ini), str(output)), ("decoded",), threads=False)
    after = BuildCommand("after", ("y", str(output), str(tmp_path / "after")), ("after",), (decode,), threads=False)

    def runs():
        store = BuildStore(str(tmp_path), {str(ini): [str(model)]})
        done = [command.name for command in (decode, after) if store.is_done(command)]
        CommandRunner(store, PROGRAM, 2).make([[decode, after]])
        return [name for name in ("decode", "after") if name not in done]

    model.write_text("first")
    assert runs() == ["decode", "after"]
    assert runs() == []
    model.write_text("second")
    assert runs() == ["decode", "after"]
    assert runs() == []


def test_a_record_that_is_damaged_is_none(tmp_path):
    (tmp_path / "input").write_text("a")
    build = tmp_path / "build"
    done(tmp_path, build)
    (build / "commands.json").write_text("[")
    assert done(tmp_path, build) == {"first", "second", "third"}


def waiting(folder, name, other, *after):
    """Return a command that ends when another one runs at the same time."""
    return BuildCommand(name, ("wait", str(folder / name), str(folder / other)), (name,), after, threads=False)


def test_chains_run_side_by_side(tmp_path):
    make(tmp_path, [waiting(tmp_path, "one", "other")], [waiting(tmp_path, "other", "one")])
    assert (tmp_path / "one").exists()
    assert (tmp_path / "other").exists()


def test_a_chain_alone_has_all_threads(tmp_path):
    """This includes a chain that is alone because the others are finished."""

    def threads_of(*names):
        make(tmp_path, *([BuildCommand(name, ("x", str(tmp_path / name)), (name,))] for name in names), threads=6)
        return {(tmp_path / name).read_text() for name in names}

    assert threads_of("one") == {"x6"}
    assert threads_of("two", "one") == {"x6"}
    assert "x3" in threads_of("three", "four", "one")
    # With one thread, chains do not run in parallel.
    chains = ([BuildCommand(name, ("x", str(tmp_path / name)), (name,))] for name in ("five", "six"))
    make(tmp_path, *chains, threads=1)
    assert (tmp_path / "five").read_text() == (tmp_path / "six").read_text() == "x1"


def test_a_failure_is_told_and_ends_the_others(tmp_path):
    bad = BuildCommand("bad", ("fail",), ("bad",), threads=False)
    after = BuildCommand("after", ("x", str(tmp_path / "bad"), str(tmp_path / "after")), ("after",), (bad,))
    recorded = []
    with pytest.raises(PhraseToolError, match=r"^it cannot be \(step bad\)$"):
        make(tmp_path, [bad, after], [waiting(tmp_path, "slow", "never")], say=recorded.append)
    assert "bad: first" in recorded
    assert not (tmp_path / "slow").exists()
    record = json.loads((tmp_path / "commands.json").read_text())
    assert not record["bad"]["done"]
    assert "after" not in record


def test_training_goes_on(tmp_path):
    """An interrupted command gets `--resume` if it is the same command and there is a checkpoint."""
    (tmp_path / "model").mkdir()
    output = tmp_path / "model" / "config.json"
    command = BuildCommand("train", ("t", str(output)), ("model/config.json",), threads=False,
                           resumes=str(tmp_path / "model"))  # fmt: skip
    (tmp_path / "model" / "checkpoint.safetensors").write_text("")
    make(tmp_path, [command])
    # The checkpoint of another command is overwritten.
    assert output.read_text().endswith("--overwrite")
    record = json.loads((tmp_path / "commands.json").read_text())
    record["train"]["done"] = False
    (tmp_path / "commands.json").write_text(json.dumps(record))
    assert not BuildStore(str(tmp_path)).can_resume(BuildCommand("train", ("u",), (), resumes=command.resumes))
    make(tmp_path, [command])
    assert output.read_text().endswith("--resume")
    assert BuildStore(str(tmp_path)).seconds([command]).keys() == {"train"}


def test_what_is_kept_beside_an_output_is_of_the_same_command(tmp_path):
    kept, output = tmp_path / "pairs.unfinished", tmp_path / "pairs"
    command = BuildCommand("decode", ("t", str(output)), ("pairs",), threads=False, keeps=str(output))
    for same in (False, True):
        kept.mkdir(exist_ok=True)
        (kept / "settings.json").write_text("{}")
        make(tmp_path, [command])
        assert output.read_text().endswith("--resume")
        assert kept.exists() == same
        record = json.loads((tmp_path / "commands.json").read_text())
        record["decode"]["done"] = False
        (tmp_path / "commands.json").write_text(json.dumps(record))


def test_what_passed_the_checks_is_done_for_who_goes_without_them(tmp_path):
    """Results made with `--force` are made again without it, and so are all results that depend on them."""

    def chain(*force):
        first = BuildCommand("first", ("x", *force, str(tmp_path / "first")), ("first",), threads=False)
        second = ("x", *force, str(tmp_path / "first"), str(tmp_path / "second"))
        return [first, BuildCommand("second", second, ("second",), (first,), threads=False)]

    def done(*force):
        return [BuildStore(str(tmp_path)).is_done(command) for command in chain(*force)]

    assert done() == [False, False]
    make(tmp_path, chain()[:1])
    assert done(FORCE) == [True, False]
    make(tmp_path, chain(FORCE))
    assert (done(), done(FORCE)) == ([True, False], [True, True])
    make(tmp_path, chain())
    assert (done(), done(FORCE)) == ([True, True], [True, True])


def test_paths_are_shown_as_somebody_here_would_write_them(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path(str(tmp_path / "there" / "a.gz")) == "../there/a.gz"
    assert shown_path(str(tmp_path / "here" / "a.gz")) == "a.gz"
    assert shown_path("/elsewhere/a.gz") == "/elsewhere/a.gz"
    assert [shown_path(text) for text in ("--stack", "b/c", "")] == ["--stack", "b/c", ""]


@pytest.mark.parametrize(
    ("present", "former"),
    [
        ("tune --dev a b --seed 1", "tune --source a --reference b --seed 1"),
        ("rerank l --source s --dev a b -o x", "rerank l --source s --dev-source a --dev-reference b -o x"),
        ("train p --epochs 3 --loss x", "train p --iterations 3 --loss x"),
        ("prune t --bitext a b --similarities s", "prune t --corpus a b --scores s"),
        ("extract a b c --reordering-out r", "extract a b c --reordering-table r"),
        ("moses-ini --reordering-table r --dev", "moses-ini --reordering-table r --dev"),
    ],
)
def test_renamed_options_leave_identities_as_they_were(present, former):
    assert former_arguments(present.split()) == former.split()
