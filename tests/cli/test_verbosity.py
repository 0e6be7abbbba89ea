"""`--verbose`: settings, versions and times, on standard error, and nothing else changes."""

import re

import pytest

from tests.commands import run_inside, write
from tests.tables import TABLES


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "t", TABLES["lattice"]).name


def test_what_is_said(table, model_folder, tmp_path):
    arguments = ("prune", table, "-m", model_folder, "-t", "0.5")
    (tmp_path / "phrasetool.toml").write_text("[prune]\nkeep-top = 1\n")
    plain, outcome = run_inside(*arguments), run_inside(*arguments, "-v")
    assert outcome.out == plain.out
    said = outcome.err.splitlines()
    assert "phrasetool: configuration: phrasetool.toml" in said
    assert any(line.startswith("phrasetool: version: phrasetool ") and "|numpy:" in line for line in said)
    assert {"phrasetool: --threshold: 0.5", "phrasetool: --keep-top: 1  (configuration)"} <= set(said)
    assert "phrasetool: --seed: 1  (default)" in said
    assert re.search(r"^phrasetool: prune: \d+\.\d\d s$", outcome.err, re.MULTILINE)
    assert re.fullmatch(r"phrasetool: prune: \d+\.\d\d s in all", said[-1])
    # The summary of the quieter run is part of it.
    assert set(plain.err.splitlines()) <= set(said)


def test_every_kind_of_training_takes_it(tmp_path):
    outcome = run_inside("train", "autoencoder", "-v", tmp_path / "none", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert f"{tmp_path / 'none'}: No such file" in outcome.err.splitlines()[-1]


def test_nothing_is_left_for_the_next_command(table):
    assert "version" in run_inside("inspect", table, "--verbose").err
    assert run_inside("inspect", table).err == ""


@pytest.mark.parametrize("arguments", [("-q", "-v"), ("-v", "-q"), ("--verbose", "--quiet")])
def test_not_both(table, arguments):
    outcome = run_inside("inspect", table, *arguments)
    assert outcome.code == 2
    assert outcome.message.startswith("phrasetool: give --quiet or --verbose, not both")
