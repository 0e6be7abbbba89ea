"""A moses.ini in memory: paths, sections and weights."""

import os
import re

import pytest

from moses_compat.ini.lines import FeatureLine
from moses_compat.ini.moses_ini import ENCODING, MosesIni
from moses_compat.ini.reading import read_moses_ini
from phrasetool.errors import DataError
from tests.commands import write


def feature(name, line=1, **arguments):
    return FeatureLine(name.rstrip("0123456789"), name, arguments, line)


@pytest.mark.parametrize(
    ("here", "beside", "folder", "note"),
    [
        ("", "", "model", ""),
        ("", "t l", "model", "its paths start from .*model: t does not exist in the working directory, where"),
        # As Moses takes them: from where it was started.
        ("t l", "", "", ""), ("t", "", "", ""), ("t l", "t l", "", ""), ("l2", "", "", ""),
        ("T l", "t l", "", "!t of the working directory is used, as by Moses, and not that in .*model, which differs$"),
        # Moses would stop: all or nothing.
        ("t", "t l", "model", "its paths start from .*model: l does not exist in the working directory"),
        ("T", "t l", "model", "!its paths .*; t of the working directory, which differs from that in .*, is not used$"),
        ("t", "l", None, "t exists in the working directory alone and l in .*model alone; relative paths"),
    ],
)  # fmt: skip
def test_relative_paths_start_from_one_folder(tmp_path, monkeypatch, here, beside, folder, note):
    """T has another content than t; l2 is another spelling of l that Moses finds."""
    for place, names in ((tmp_path, here), (tmp_path / "model", beside)):
        place.mkdir(exist_ok=True)
        for name in names.split():
            write(place / name.lower().replace("l2", "l.gz"), b"1" if name == "T" else b"")
    monkeypatch.chdir(tmp_path)
    ini = MosesIni(str(tmp_path / "model/moses.ini"), [])
    ini.features = [feature("A0", path="t"), feature("B0"), feature("C0", path=""), feature("D0", path="l")]
    if folder is None:
        with pytest.raises(DataError, match=note):
            ini.resolve("t")
        return
    assert ini.resolve("/a/b") == "/a/b"
    assert ini.paths == [str(tmp_path / folder / "t"), str(tmp_path / folder / "l")] if folder else ["t", "l"]
    assert re.search(note.removeprefix("!"), ini.path_base.note)
    assert bool(ini.path_base.note) == bool(note)
    assert ini.path_base.doubtful == note.startswith("!")


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
