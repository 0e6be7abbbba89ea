"""Properties of paths: streams and pipes, scratch folders, the same file by two names, files of models."""

from __future__ import annotations

import os

from moses_compat.files.paths import display_name, is_pipe, is_stream, model_of, same_file, scratch_place
from tests.commands import write


def test_names_in_messages():
    assert display_name("-") == "standard input"
    assert display_name("x") == "x"


def test_what_can_be_read_but_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    file = write(tmp_path / "file", b"")
    streams = ["-", str(tmp_path / "pipe"), os.devnull]
    assert [path for path in [*streams, str(file), str(tmp_path), str(tmp_path / "none")] if is_stream(path)] == streams
    assert [path for path in [*streams, str(file), "a\0b"] if is_pipe(path)] == streams[1:2]


def test_scratch_files_lie_beside_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert scratch_place("new") == scratch_place(str(tmp_path / "other")) == str(tmp_path)
    assert {scratch_place(path) for path in ("-", "pipe", os.devnull)} == {None}


def test_same_file(tmp_path, monkeypatch):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"")
    b.write_bytes(b"")
    (tmp_path / "link").symlink_to(a)
    os.link(a, tmp_path / "hard")
    monkeypatch.chdir(tmp_path)
    for alias in (a, tmp_path / "link", tmp_path / "hard", "a", "./a"):
        assert same_file(str(a), str(alias))
    assert not same_file(str(a), str(b))
    assert not same_file("-", "-")
    assert same_file("new", str(tmp_path / "new"))
    assert not same_file("new", "newer")


def test_same_file_before_it_exists(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    monkeypatch.chdir(tmp_path)
    assert same_file("new", "sub/../new")
    assert same_file("sub/new", "link/new")


def test_files_of_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    for name in ("config.json", "weights.safetensors", "source.vocab", "table.gz", "vocab.txt"):
        (tmp_path / "model" / name).touch()
    (tmp_path / "link").symlink_to("model/source.vocab")
    (tmp_path / "vocab.txt").touch()
    assert model_of("model/config.json") == model_of("model/vocab.txt") == "model"
    assert model_of(str(tmp_path / "model" / "weights.safetensors")) == str(tmp_path / "model")
    assert model_of("link") == "."
    assert not any(model_of(path) for path in ("model/table.gz", "vocab.txt", "model/new.vocab", "model", "-", "a\0b"))
