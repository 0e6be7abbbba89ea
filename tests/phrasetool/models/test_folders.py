import os
from types import SimpleNamespace

import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.models import folders
from phrasetool.models.folders import check_folder, check_model_folder, check_space


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


@pytest.mark.parametrize(
    ("files", "options", "message", "remedy"),
    [
        ([], {}, None, None),
        (["checkpoint"], {"overwrite": True}, None, None),
        (["checkpoint"], {}, "there is an unfinished training already", "resume or replace a training"),
        (["checkpoint"], {"resume": True}, None, None),
        (["config.json"], {"overwrite": True}, None, None),
        # A finished model was being replaced, when that was interrupted.
        (["config.json", "checkpoint"], {"resume": True}, None, None),
        (["config.json"], {}, "there is a finished model already", "overwrite the model"),
        (["config.json", "checkpoint"], {}, "an unfinished training already", "resume or replace a training"),
        (["config.json"], {"resume": True}, "the training is finished", "train anew"),
        (["config.json"], {"resume": True, "overwrite": True}, "the training is finished", "train anew"),
        ([], {"resume": True}, "checkpoint: no checkpoint to resume from", "train without a checkpoint"),
    ],
)
def test_what_a_model_folder_holds(tmp_path, files, options, message, remedy):
    for name in files:
        (tmp_path / name).write_text("")
    if message is None:
        check_model_folder(tmp_path, "checkpoint", **options)
        return
    with pytest.raises(ModelError, match=message) as caught:
        check_model_folder(tmp_path, "checkpoint", **options)
    assert caught.value.remedy == remedy
