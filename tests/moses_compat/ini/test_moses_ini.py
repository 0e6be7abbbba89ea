"""A moses.ini in memory: paths, sections and weights."""

import os

import pytest

from moses_compat.ini.lines import FeatureLine
from moses_compat.ini.moses_ini import ENCODING, MosesIni
from moses_compat.ini.reading import read_moses_ini
from phrasetool.errors import DataError
from tests.commands import write


def feature(name, line=1, **arguments):
    return FeatureLine(name.rstrip("0123456789"), name, arguments, line)


def test_paths_are_those_that_exist_or_beside_the_ini(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    ini = MosesIni(str(tmp_path / "model/moses.ini"), [])
    monkeypatch.chdir(tmp_path)
    assert ini.resolve("/a/b") == "/a/b"
    assert ini.resolve("table.gz") == str(tmp_path / "model/table.gz")
    assert ini.resolve("../lm/x") == str(tmp_path / "lm/x")
    write(tmp_path / "table.gz", b"")
    # As Moses takes it: from where it was started.
    assert ini.resolve("table.gz") == "table.gz"
    ini.features = [feature("A0", path="table.gz"), feature("B0"), feature("C0", path=""), feature("D0", path="lm")]
    assert ini.paths == ["table.gz", str(tmp_path / "model/lm")]


def test_a_relative_ini(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert MosesIni("moses.ini", []).resolve("x") == "x"
    assert MosesIni(os.path.join("a", "moses.ini"), []).resolve("x") == os.path.join("a", "x")


def test_values_of_sections():
    ini = MosesIni("i", [], sections={"limit": ["7"], "bad": ["x"], "none": []}, section_lines={"limit": [3]})
    assert ini.values("limit") == [("7", 3)]
    assert ini.values("missing") == []
    assert [ini.number(name, 5) for name in ("limit", "none", "missing")] == [7, 5, 5]
    with pytest.raises(DataError, match=r"^i: \[bad\]: expected a whole number, found 'x'$"):
        ini.number("bad", 5)


def test_weights_need_a_feature():
    ini = MosesIni("i", [], features=[feature("A0"), feature("B0")], weight_lines={"A0": 4, "B0": 5})
    ini.check_weights()
    for name, message in (("C0", "there is no feature C0"), ("A0_x", "A0_x= is a weight of a sparse feature")):
        ini.weight_lines[name] = 9
        with pytest.raises(DataError, match=f"^i:9: {message}"):
            ini.check_weights()
        del ini.weight_lines[name]


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\r\n# w\xf6rter \xff\n", b"\n# no end", b"\n# a\x0b\x85\xe2\x80\xa8b\n"]
)
def test_the_text_is_the_file(tmp_path, data):
    data = b"[feature]\nWordPenalty" + data
    assert read_moses_ini(str(write(tmp_path / "i", data))).text.encode(*ENCODING) == data
