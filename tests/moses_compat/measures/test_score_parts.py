import os

import numpy as np
import pytest

from moses_compat.measures.score_parts import ScoreParts, remove_parts
from phrasetool.errors import DataError, PhraseToolError

HASHES = np.array([5, 7, 9], np.uint32)
SCORES = np.array([-1.5, np.nan, -7], np.float32)


def test_what_was_written_is_read(tmp_path):
    parts = ScoreParts(str(tmp_path / "p"), "a")
    assert parts.read(3, HASHES) is None
    parts.write(3, HASHES, SCORES)
    assert np.array_equal(parts.read(3, HASHES), SCORES, equal_nan=True)
    assert parts.read(2, HASHES) is None
    remove_parts([str(tmp_path / "p")])
    assert not (tmp_path / "p").exists()


def test_parts_of_others_are_refused(tmp_path):
    folder = str(tmp_path / "p")
    ScoreParts(folder, "a").write(0, HASHES, SCORES)
    with pytest.raises(DataError, match=r"p: holds scores of another table; delete the folder"):
        ScoreParts(folder, "a").read(0, HASHES + np.uint32(1))
    with pytest.raises(DataError, match="another table"):
        ScoreParts(folder, "a").read(0, HASHES[:2])
    with pytest.raises(DataError, match="another model"):
        ScoreParts(folder, "b").read(0, HASHES)
    (tmp_path / "p" / "part-000000.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="damaged"):
        ScoreParts(folder, "a").read(0, HASHES)


def test_a_full_disk_is_one_line_and_leaves_what_is_there(tmp_path, monkeypatch):
    parts = ScoreParts(str(tmp_path / "p"), "a")
    parts.write(0, HASHES, SCORES)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PhraseToolError, match="p: cannot write: the disk is full"):
        parts.write(1, HASHES, SCORES)
    assert os.listdir(tmp_path / "p") == ["part-000000.parquet"]


def test_a_folder_with_other_things_stays(tmp_path):
    (tmp_path / "mine").write_text("x")
    remove_parts([str(tmp_path)])
    assert (tmp_path / "mine").exists()
