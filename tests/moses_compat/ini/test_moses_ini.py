"""A moses.ini in memory: paths, sections and weights.

Edits of its lines make the requested changes, and no others.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.ini.moses_ini import (
    ENCODING,
    FeatureLine,
    MosesIni,
    bare,
    like,
    number_text,
    with_arguments,
    with_numbers,
    with_words,
)
from moses_compat.ini.reading import read_moses_ini
from phrasetool.errors import DataError
from tests.commands import write
from tests.variants import for_each


def test_lines():
    assert with_arguments("A name=x path=p\tb=c # path=q\r", {"path": "r", "new": "1"}) == (
        "A name=x path=r\tb=c new=1 # path=q\r"
    )
    # A key that only ends with `path` is another key.
    assert with_arguments("A source-path=p", {"path": "r"}) == "A source-path=p path=r"
    assert with_words(" 0 0  0 4 t # t\r", {3: "6", 4: "long/path"}) == " 0 0  0 6 long/path # t\r"
    assert with_numbers("A=  1.0\t2 #3", [1, 3, 4]) == "A=  1.0\t3 4 #3"
    assert with_numbers(" 0.50 # x\r", [0.5], 0) == " 0.50 # x\r"
    assert with_numbers("A= 1 2 3 # x", [1]) == "A= 1 # x"


BLANKS = st.sampled_from([" ", "  ", "\t", " \t"])
TOKEN = st.from_regex(r"[a-z0-9./=-]{1,6}", fullmatch=True)
ENDS = st.sampled_from(["", " ", " # x=1 2", "# a=b", "\r", " \t# y\r"])
APART = ENDS.filter(lambda end: end[:1] != "#")


@given(
    st.lists(st.tuples(BLANKS, TOKEN), min_size=1, max_size=6),
    APART,
    st.dictionaries(st.integers(0, 5), TOKEN),
)
def test_other_words_and_the_blanks_stay(parts, end, changed):
    changed = {index: word for index, word in changed.items() if index < len(parts)}
    line = "".join(blank + word for blank, word in parts) + end
    expected = "".join(blank + changed.get(i, word) for i, (blank, word) in enumerate(parts)) + end
    assert with_words(line, changed) == expected


@given(
    st.lists(st.tuples(BLANKS, st.sampled_from(["1", "0.50", "-.5e0", "+2", "1e-3"])), max_size=5), ENDS,
    st.lists(st.sampled_from([1.0, 0.5, -0.5, 2.0, 0.001, 1 / 3]), max_size=6), st.booleans(),
)  # fmt: skip
def test_numbers_of_a_value_keep_their_spelling(parts, end, values, named):
    head = "A=" if named else ""
    line = head + "".join(blank + number for blank, number in parts) + end
    result = with_numbers(line, values, int(named))
    text = bare(result).removeprefix(head)
    assert [float(word) for word in text.split()] == [float(f"{value:.9g}") for value in values]
    for (_, old), new, value in zip(parts, text.split(), values, strict=False):
        assert new == old if float(old) == value else new == number_text(value)
    assert result.startswith(head)
    assert result.endswith(end)


@given(st.text(st.sampled_from("ab =#\t\r"), max_size=12))
def test_what_a_line_says_without_its_comment(line):
    assert bare(line) == line.partition("#")[0].strip(" \t\r")


@given(st.dictionaries(st.sampled_from(["path", "name", "new", "num-features"]), TOKEN), ENDS)
def test_arguments_are_changed_or_added(changed, end):
    old = {"name": "x", "source-path": "p", "path": "q"}
    line = "Kind" + "".join(f" {key}={value}" for key, value in old.items()) + end
    result = with_arguments(line, changed)
    assert dict(word.split("=", 1) for word in bare(result).split()[1:]) == {**old, **changed}
    assert result.endswith(end)
    assert with_arguments(result, changed) == result


@given(st.floats(-1024, 1024, width=32))
def test_weights_in_single_precision_come_back(value):
    assert np.float32(float(number_text(value))) == np.float32(value)


@pytest.mark.parametrize(("neighbour", "expected"), [("x", "new"), ("x\r", "new\r"), ("", "new"), ("\rx", "new")])
def test_a_new_line_ends_as_the_one_beside_it(neighbour, expected):
    assert like("new", neighbour) == expected


def feature(name, line=1, **arguments):
    return FeatureLine(name.rstrip("0123456789"), name, arguments, line)


@for_each(
    ("here", "beside", "folder", "note"),
    [
        ("", "", "model", ""),
        ("", "t l", "model", "its paths are relative to .*model, because t does not exist in the working directory, "),
        # Relative to the working directory, as in Moses.
        ("t l", "", "", ""), ("t", "", "", ""), ("t l", "t l", "", ""), ("l2", "", "", ""),
        ("T l", "t l", "", "!t of the working directory is used, as by Moses, and not that in .*model, which differs$"),
        # Moses would stop, because the working directory lacks a file; all paths are relative to one folder.
        ("t", "t l", "model", "its paths are relative to .*model, because l does not exist in the working directory"),
        ("T", "t l", "model", "!its paths .*; t of the working directory, which differs from that in .*, is not used$"),
        ("t", "l", None, "t exists only in the working directory and l only in .*model; all relative paths"),
    ],
)  # fmt: skip
def test_relative_paths_start_from_one_folder(tmp_path, monkeypatch, here, beside, folder, note):
    """T stands for a file t with other content, and l2 for l.gz, which Moses also finds as l."""
    for directory, names in ((tmp_path, here), (tmp_path / "model", beside)):
        directory.mkdir(exist_ok=True)
        for name in names.split():
            write(directory / name.lower().replace("l2", "l.gz"), b"1" if name == "T" else b"")
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
