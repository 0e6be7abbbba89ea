import os

import pytest

from moses_compat.measures.score_folders import finishing, parts_beside


def test_where_parts_are(tmp_path):
    assert parts_beside(str(tmp_path / "out"), 2) == str(tmp_path / "out") + ".scores-2"
    assert parts_beside("-", 1) is None
    assert parts_beside(os.devnull, 1) is None


def test_parts_stay_where_work_fails(tmp_path):
    folder = tmp_path / "o.scores-1"
    folder.mkdir()
    (folder / "part-000000.parquet").write_bytes(b"")
    with pytest.raises(KeyError), finishing([None, str(folder)]):
        raise KeyError
    assert folder.exists()
    with finishing([None, str(folder), str(tmp_path / "none")]):
        assert folder.exists()
    assert not folder.exists()
