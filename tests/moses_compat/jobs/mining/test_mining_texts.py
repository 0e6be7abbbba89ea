"""Texts that are searched: against dictionaries."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.jobs.mining.mining_texts import RowTexts, read_sides, stored
from phrasetool.errors import DataError, PhraseToolError

LINE = st.lists(st.sampled_from(["a", "b", "&amp;", "&", "ä", "\t", "\rc\u00a0", "  "]), max_size=5).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=12), last=st.booleans())
def test_each_different_sentence_once(tmp_path_factory, lines, last):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "s").write_bytes(("\n".join(lines) + ("\n" if last or not lines[-1] else "")).encode())
    (folder / "t").write_bytes(b"x\n")
    expected = {}
    for line in lines:
        plain = " ".join(filter(None, re.split("[ \t]", line.replace("&amp;", "&"))))
        if plain:
            expected.setdefault(plain, line.replace("\t", " ").strip(" "))
    if not expected:
        with pytest.raises(DataError, match="no sentence"):
            read_sides(str(folder / "s"), str(folder / "t"), False)
        return
    text = read_sides(str(folder / "s"), str(folder / "t"), False)[0]
    assert {text.plain(row): text.written(row).decode() for row in range(len(text))} == expected
    assert (text.lines, text.empty) == (len(lines), sum(not line.strip() for line in lines))
    lengths = [len(text.plain(row).encode()) for row in range(len(text))]
    assert lengths == sorted(lengths)


def test_order_and_keys_do_not_depend_on_the_order_of_lines(tmp_path):
    for name, lines in (("a", "x y\nz\nu v w\n"), ("b", "u v w\nz\nz\nx  y\n"), ("t", "x\n")):
        (tmp_path / name).write_text(lines)
    sides = [read_sides(str(tmp_path / name), str(tmp_path / "t"), False) for name in "ab"]
    assert stored(sides[0], lambda text, side: text).fingerprint == stored(sides[1], lambda text, side: "").fingerprint
    assert [sides[0][0].plain(row) for row in range(3)] == [sides[1][0].plain(row) for row in range(3)]


def test_texts_for_encoders(tmp_path):
    (tmp_path / "s").write_text("b c\na\n")
    (tmp_path / "t").write_text("x\n")
    phrases = stored(read_sides(str(tmp_path / "s"), str(tmp_path / "t"), False), lambda text, side: f"{side}:{text}")
    assert list(phrases.texts[0]) == ["0:a", "0:b c"]
    assert list(phrases.texts[1]) == ["1:x"]
    assert phrases.texts[0][0:5] == ["0:a", "0:b c"]
    assert isinstance(phrases.texts[0], RowTexts)
    with pytest.raises(IndexError):
        phrases.texts[0][2]


def test_names(tmp_path):
    (tmp_path / "s").write_text("id 1\tb c\td\nx\ta\n")
    (tmp_path / "t").write_text("y\tx\n")
    text = read_sides(str(tmp_path / "s"), str(tmp_path / "t"), True)[0]
    assert [(text.name_of(row), text.written(row)) for row in range(2)] == [(b"x", b"a"), (b"id 1", b"b c d")]


def test_one_file_cannot_be_both_sides(tmp_path):
    (tmp_path / "s").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(PhraseToolError, match="is the file of the source, too"):
        read_sides(str(tmp_path / "s"), str(tmp_path / "link"), False)
    with pytest.raises(PhraseToolError, match="cannot be both sides"):
        read_sides("-", "-", False)
