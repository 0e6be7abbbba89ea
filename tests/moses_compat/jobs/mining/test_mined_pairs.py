"""Files of pairs: columns that are there, and those that are not."""

import pytest

from moses_compat.jobs.mining.mined_pairs import read_gold, read_mined
from phrasetool.errors import DataError


def test_mined(tmp_path):
    (tmp_path / "m").write_text("1.5\ta  b\tc\n\n2\td\te\t1.0\tcopy")
    found = read_mined(str(tmp_path / "m"))
    assert found.scores.tolist() == [1.5, 2.0]
    assert found.pairs == [(b"a b", b"c"), (b"d", b"e")]


def test_gold_with_and_without_scores(tmp_path):
    (tmp_path / "g").write_text("a\tb\n0.5\tc\td\n7\t8\nx\ty\tz\n")
    assert read_gold(str(tmp_path / "g")) == {(b"a", b"b"), (b"c", b"d"), (b"7", b"8"), (b"x", b"y")}


@pytest.mark.parametrize("line", ["a", "a\tb", "x\ta\tb", "inf\ta\tb"])
def test_what_is_no_mined_pair(line, tmp_path):
    (tmp_path / "m").write_text(f"1\ta\tb\n{line}\n")
    with pytest.raises(DataError, match=r"m:2: "):
        read_mined(str(tmp_path / "m"))
