import pytest

from moses_compat.tables.blocks import scores_of_table
from phrasetool.errors import DataError
from tests.commands import write


@pytest.mark.parametrize(("data", "scores"), [(b"a ||| b ||| 1 2 3\n", 3), (b"a ||| b ||| 0.5 ||| 0-0\n", 1)])
def test_scores_of_a_table(tmp_path, data, scores):
    assert scores_of_table(str(write(tmp_path / "table.gz", data))) == scores


def test_no_entry(tmp_path):
    path = write(tmp_path / "table", b"")
    with pytest.raises(DataError, match=f"^{path}: holds no phrase-table entry$"):
        scores_of_table(str(path))
