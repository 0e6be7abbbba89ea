import os
from types import SimpleNamespace

import pytest

from phrasetool.disk import writable
from phrasetool.disk.writable import check_folder, check_space
from phrasetool.errors import PhraseToolError


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
    monkeypatch.setattr(writable.shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    check_space(tmp_path / "new" / "m", 1_000_000)
    with pytest.raises(
        PhraseToolError, match=r"m: 1\.0 MB are free on its disk, but .* takes up to 2\.5 MB; make room"
    ):
        check_space(tmp_path / "new" / "m", 2_500_000)
