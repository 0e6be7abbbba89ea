import os
from types import SimpleNamespace

import pytest

from moses_compat.files import checks
from moses_compat.files.checks import check_readable, check_writable
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import write


def test_a_check_changes_nothing(tmp_path):
    there = write(tmp_path / "there", b"as it was")
    os.mkfifo(tmp_path / "pipe")
    for path in (there, tmp_path / "pipe"):
        check_readable(str(path))
        check_writable(str(path))
    check_writable(str(tmp_path / "new.gz"))
    check_writable("-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "there"]
    assert there.read_bytes() == b"as it was"


def test_what_cannot_be_read(tmp_path):
    for path, message in ((tmp_path / "none", "none: No such file"), (tmp_path, "is a directory")):
        with pytest.raises(DataError, match=message):
            check_readable(str(path))


def test_what_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(PhraseToolError, match=r"out: cannot write: there is no folder .*no$"):
        check_writable(str(tmp_path / "no" / "out"))
    with pytest.raises(PhraseToolError, match="is a folder, expected a file name"):
        check_writable(str(tmp_path))
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(PhraseToolError, match="out: cannot write: the disk is full"):
        check_writable(str(tmp_path / "out"))
