"""Scratch files and folders, checks of output folders, and the replacement of their files."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from phrasetool.disk import folders
from phrasetool.disk.folders import (
    CONFIG,
    check_folder,
    check_space,
    exchange,
    restore,
    scratch_file,
    scratch_folder,
    staged,
)
from phrasetool.errors import PhraseToolError

_HOLDER = """
import sys, time
from phrasetool.disk.folders import scratch_file, scratch_folder
handle, path = scratch_file(sys.argv[1], ".out.", ".part")
folder = scratch_folder(sys.argv[1], ".staged-")
name = folder.__enter__()
open(name + "/inside", "w").close()
print(path, name, sep="\\n", flush=True)
time.sleep(100)
"""
OLD = {CONFIG: "old", "part/words": "old", "weights": "old", "log": "mine", "deeper/file": "mine"}
NEW = {**OLD, CONFIG: "new", "part/words": "new", "weights": "new", "more": "new"}


@pytest.fixture
def holder(tmp_path: Path):
    """Start a process that holds a scratch file and a scratch folder; yield it and their paths."""
    process = subprocess.Popen([sys.executable, "-c", _HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield process, [Path(process.stdout.readline().strip()) for _ in range(2)]
    process.kill()
    process.wait()
    process.stdout.close()


def _make_both(folder: Path) -> None:
    handle, path = scratch_file(folder, ".out.", ".part")
    os.unlink(path)
    os.close(handle)
    with scratch_folder(folder, ".staged-"):
        pass


def test_leftovers_of_a_killed_process_are_removed(tmp_path, holder):
    process, paths = holder
    _make_both(tmp_path)
    assert all(path.exists() for path in paths), "its process lives"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert all(path.exists() for path in paths)
    _make_both(tmp_path)
    assert not any(tmp_path.iterdir())


def test_files_with_other_names_are_kept(tmp_path):
    others = [".out.abcdefgh.part2", ".out.abcdefghi.part", ".other.abcdefgh.part", ".out.ABCDEFGH.part", "out"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / "target").touch()
    (tmp_path / ".out.abcdefgh.part").symlink_to(tmp_path / "target")
    _make_both(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "target", ".out.abcdefgh.part"])


def test_scratch_files_of_one_process_do_not_remove_each_other(tmp_path):
    first = scratch_file(tmp_path, ".out.", ".part")
    second = scratch_file(tmp_path, ".out.", ".part")
    with scratch_folder(tmp_path, ".staged-") as first_folder, scratch_folder(tmp_path, ".staged-") as second_folder:
        assert len({first[1], second[1], first_folder, second_folder}) == 4
        assert all(os.path.exists(path) for path in (first[1], second[1], first_folder, second_folder))
    for handle, _ in (first, second):
        os.close(handle)
    assert not os.path.exists(first_folder)


def test_a_renamed_folder_is_kept(tmp_path):
    with scratch_folder(tmp_path, ".made-") as name:
        os.replace(name, tmp_path / "final")
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127])
def test_names_of_the_maximum_length(tmp_path, name):
    with scratch_folder(tmp_path, f".{name}.", ".part") as folder:
        assert folder.endswith(".part")
        assert len(os.fsencode(os.path.basename(folder))) == 255
    handle, path = scratch_file(tmp_path, f".{name}.", ".part")
    os.close(handle)
    _, second_path = scratch_file(tmp_path, f".{name}.", ".part")
    assert os.listdir(tmp_path) == [os.path.basename(second_path)] != [os.path.basename(path)]


def test_a_folder_is_removed_with_hardly_a_descriptor_left(tmp_path):
    """This happens when the limit of open files stops a sorted copy."""
    script = (
        "import os, resource, sys\nfrom phrasetool.disk.folders import scratch_folder\n"
        "with scratch_folder(sys.argv[1], '.x-') as folder:\n"
        "    open(folder + '/inside', 'w').close()\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "    assert os.path.exists(folder + '/inside')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []


def test_the_check_of_a_folder_does_not_create_it(tmp_path):
    check_folder(tmp_path / "a" / "b")
    check_folder(tmp_path)
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PhraseToolError, match="file: is a file, expected a folder to write to"):
        check_folder(tmp_path / "file")
    with pytest.raises(PhraseToolError, match=r"m: cannot write: .*file is not a folder"):
        check_folder(tmp_path / "file" / "m")
    with pytest.raises(PhraseToolError, match="/proc/m: cannot write: "):
        check_folder("/proc/m")


def test_free_disk_space(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    check_space(tmp_path / "new" / "m", 1_000_000)
    with pytest.raises(
        PhraseToolError, match=r"m: 1\.0 MB are free on its disk, but .* takes up to 2\.5 MB; make room"
    ):
        check_space(tmp_path / "new" / "m", 2_500_000)


def put(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def tree(folder):
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def save(folder):
    with staged(folder) as stage:
        put(stage, {name: text for name, text in NEW.items() if text == "new"})


@pytest.fixture
def folder(tmp_path):
    put(tmp_path / "m", OLD)
    return tmp_path / "m"


def test_a_model_is_replaced_in_one_step(folder, tmp_path, monkeypatch):
    (tmp_path / "name").symlink_to(folder)
    folder.chmod(0o750)
    trees = []

    def watched(one, other):
        trees.append(tree(other))
        result = exchange(one, other)
        trees.append(tree(other))
        return result

    monkeypatch.setattr(folders, "exchange", watched)
    save(tmp_path / "name")
    if len(trees) == 2 and trees[0] == trees[1]:
        pytest.skip("folders cannot be exchanged here")
    # Before the exchange, the old folder also contains the scratch folder with the new files.
    assert {name: text for name, text in trees[0].items() if not name.startswith(".")} == OLD
    assert trees[1] == tree(folder) == NEW
    assert folder.stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(tmp_path)) == ["m", "name"]


@pytest.mark.parametrize("step", range(7))
def test_file_by_file_the_old_model_is_restored_after_a_kill(folder, monkeypatch, step):
    monkeypatch.setattr(folders, "exchange", lambda one, other: False)
    replace, steps = os.replace, []

    def dying(one, other):
        steps.append(one)
        if len(steps) == step + 1:
            # Like a kill: no error handling takes place.
            raise KeyboardInterrupt
        replace(one, other)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        if step < 6:
            with pytest.raises(KeyboardInterrupt):
                save(folder)
        else:
            save(folder)
    restore(folder)
    result = tree(folder)
    assert {name: result[name] for name in OLD} == {name: (NEW if step == 6 else OLD)[name] for name in OLD}
    save(folder)
    assert tree(folder) == NEW


def test_file_by_file_a_full_disk_changes_nothing(folder, monkeypatch):
    monkeypatch.chdir(folder)
    replace = os.replace

    def full(one, other):
        if os.path.basename(other) == CONFIG and ".replaced" not in str(one):
            raise OSError(errno.ENOSPC, "")
        replace(one, other)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PhraseToolError, match="the disk is full"):
        save(folder)
    assert {name: text for name, text in tree(folder).items() if name != "more"} == OLD
