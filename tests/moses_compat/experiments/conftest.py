"""The files that the test configurations refer to."""

import pytest


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "moses.ini"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "model").mkdir()
    return tmp_path
