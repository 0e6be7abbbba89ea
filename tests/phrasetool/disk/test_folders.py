"""Output folders, before work begins and when it ends."""

import errno
import os
from types import SimpleNamespace

import pytest

from phrasetool.disk import folders
from phrasetool.disk.folders import CONFIG, check_folder, check_space, exchange, restore, staged
from phrasetool.errors import PhraseToolError

OLD = {CONFIG: "old", "part/words": "old", "weights": "old", "log": "mine", "deeper/file": "mine"}
NEW = {**OLD, CONFIG: "new", "part/words": "new", "weights": "new", "more": "new"}


def test_a_folder_that_can_be_made_is_not_made(tmp_path):
    check_folder(tmp_path / "a" / "b")
    check_folder(tmp_path)
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PhraseToolError, match="file: is a file, expected a folder to write to"):
        check_folder(tmp_path / "file")
    with pytest.raises(PhraseToolError, match=r"m: cannot write: .*file is no folder"):
        check_folder(tmp_path / "file" / "m")
    with pytest.raises(PhraseToolError, match="/proc/m: cannot write: "):
        check_folder("/proc/m")


def test_room_on_the_disk(tmp_path, monkeypatch):
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
    seen = []

    def watched(one, other):
        seen.append(tree(other))
        done = exchange(one, other)
        seen.append(tree(other))
        return done

    monkeypatch.setattr(folders, "exchange", watched)
    save(tmp_path / "name")
    if len(seen) == 2 and seen[0] == seen[1]:
        pytest.skip("folders cannot be exchanged here")
    # The old one still has the scratch folder in it, whose files are those of the new one, too.
    assert {name: text for name, text in seen[0].items() if not name.startswith(".")} == OLD
    assert seen[1] == tree(folder) == NEW
    assert folder.stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(tmp_path)) == ["m", "name"]


@pytest.mark.parametrize("step", range(7))
def test_file_by_file_the_old_model_comes_back(folder, monkeypatch, step):
    monkeypatch.setattr(folders, "exchange", lambda one, other: False)
    replace, steps = os.replace, []

    def dying(one, other):
        steps.append(one)
        if len(steps) == step + 1:
            # As a kill, that nothing answers to.
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
    found = tree(folder)
    assert {name: found[name] for name in OLD} == {name: (NEW if step == 6 else OLD)[name] for name in OLD}
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
