import os
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from moses_compat.experiments.config_table import ConfigTable, setting
from phrasetool.errors import DataError
from tests.variants import for_each

KNOWN = ("text", "share", "shares", "on", "count", "counts", "file", "inner")


def table(values, path="folder/c.toml", known=KNOWN):
    return ConfigTable(path, "top", values, known)


def inner_values(table, key):
    return dict(table.table(key, ("a",)).values)


@dataclass(frozen=True)
class Settings:
    file: str = setting(ConfigTable.text)
    count: int = setting(ConfigTable.integer, 3, least=2)
    shares: tuple[float, ...] = setting(ConfigTable.shares, (0.1, 0.5))
    inner: Mapping[str, int] = setting(inner_values, dict)
    other: int = 7


def test_settings_say_how_they_are_read():
    assert table({"file": "x"}).settings(Settings) == Settings("x", 3, (0.1, 0.5), {}, 7)
    settings = {"file": "x", "count": 2, "shares": [0.2, 0.3], "inner": {"a": 1}}
    assert table({"inner": settings}).section("inner", Settings, other=8) == Settings("x", 2, (0.3, 0.2), {"a": 1}, 8)
    assert table({"count": 5}).settings(Settings, file="y", count=4) == Settings("y", 5)
    with pytest.raises(DataError, match=r"top\.count: is 1; expected 2 or more"):
        table({"file": "x", "count": 1}).settings(Settings)
    with pytest.raises(DataError, match=r"unknown key top\.inner\.zzz; expected file, count, shares, inner"):
        table({"inner": {"zzz": 1}}).section("inner", Settings)


def test_what_is_left_out():
    empty = table({})
    assert "text" not in empty
    assert list(empty.table("inner", ()).values) == []


def test_one_value_is_a_list_of_one():
    values = table({"text": "a", "shares": 0.5, "count": 3, "counts": [3, 0]})
    assert values.texts("text") == values.choices("text", ("a", "b")) == ("a",)
    assert (values.numbers("shares"), values.integers("count"), values.integers("counts")) == ((0.5,), (3,), (3, 0))


def test_shares_are_each_once_and_the_largest_first():
    assert table({"shares": [0.1, 1, 0.5, 0.1]}).shares("shares") == (1.0, 0.5, 0.1)


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "a").write_text("")
    values = table({"file": "../a", "text": "../there"}, str(tmp_path / "there" / "c.toml"))
    assert values.file("file") == str(tmp_path / "a")
    assert values.files("file") == (str(tmp_path / "a"),)
    assert values.folder("text") == str(tmp_path / "there")
    assert values.output("share", "new") == str(tmp_path / "there" / "new")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert table({"file": "~/a"}).file("file") == os.path.expanduser("~/a")


@for_each(
    ("values", "ask", "message"),
    [
        ({"text": 3}, lambda t: t.text("text"), "top.text: 3 is not text between quotes"),
        ({"text": ""}, lambda t: t.text("text"), "top.text: is empty"),
        ({"text": "lft"}, lambda t: t.choice("text", ("left", "right")), "is 'lft'; did you mean left"),
        ({"text": "xyz"}, lambda t: t.choice("text", ("left", "right")), "is 'xyz'; expected left, right"),
        ({"text": ["left", "up"]}, lambda t: t.choices("text", ("left",)), "holds 'up'; expected left"),
        ({"on": 1}, lambda t: t.boolean("on"), "top.on: 1 is not true or false"),
        ({"share": True}, lambda t: t.number("share"), "top.share: True is not a number"),
        ({"share": float("inf")}, lambda t: t.number("share"), "top.share: inf is not a finite number"),
        ({"share": float("nan")}, lambda t: t.numbers("share"), "top.share: nan is not a finite number"),
        ({"count": True}, lambda t: t.integer("count", 0), "top.count: True is not a whole number"),
        ({"count": 2.0}, lambda t: t.integer("count", 0), "top.count: 2.0 is not a whole number"),
        ({"count": 1}, lambda t: t.integer("count", 2), "top.count: is 1; expected 2 or more"),
        ({"counts": [2, -1]}, lambda t: t.integers("counts"), "top.counts: holds -1; expected 0 or more"),
        ({"shares": [0.5, 0]}, lambda t: t.shares("shares"), "holds 0; a size is a share of the entries, above 0"),
        ({"shares": 1.5}, lambda t: t.shares("shares"), "holds 1.5; a size is a share"),
        ({"inner": 3}, lambda t: t.table("inner", ()), "top.inner: 3 is not a table of keys and values"),
        ({"inner": {"a": 1}}, lambda t: t.table("inner", ("b",)), "unknown key top.inner.a; expected b"),
        ({}, lambda t: t.file("file"), "the key top.file is missing"),
        ({"file": "none"}, lambda t: t.file("file"), "top.file: there is no file folder/none"),
        ({"file": "none"}, lambda t: t.folder("file"), "top.file: there is no folder folder/none"),
        ({"counts": []}, lambda t: t.integers("counts"), "top.counts: is empty"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_key(values, ask, message):
    with pytest.raises(DataError, match=r"^folder/c\.toml: ") as caught:
        ask(table(values))
    assert message in str(caught.value)


def test_a_key_that_is_unknown():
    with pytest.raises(DataError, match=r"unknown key top\.shars; did you mean shares\?"):
        table({"shars": 1})
    with pytest.raises(DataError, match=r"unknown key zzzz; expected text$"):
        ConfigTable("c.toml", "", {"zzzz": 1}, ("text",))
    assert list(table({"anything": 1}, known=None)) == ["anything"]
