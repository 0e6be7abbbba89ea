"""`--verbose` adds settings, versions and times to standard error, and changes nothing else."""

import re

import pytest

from tests.commands import run_inside, write
from tests.tables import TABLES


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "t", TABLES["lattice"]).name


def test_messages(table, model_folder, tmp_path):
    arguments = ("prune", table, "-m", model_folder, "-t", "0.5")
    (tmp_path / "phrasetool.toml").write_text("[prune]\nkeep-top = 1\n")
    plain, outcome = run_inside(*arguments), run_inside(*arguments, "-v")
    assert outcome.out == plain.out
    messages = outcome.err.splitlines()
    assert "phrasetool: configuration: phrasetool.toml" in messages
    assert any(line.startswith("phrasetool: version: phrasetool ") and "|numpy:" in line for line in messages)
    assert {"phrasetool: --threshold: 0.5", "phrasetool: --keep-top: 1  (configuration)"} <= set(messages)
    assert "phrasetool: --seed: 1  (default)" in messages
    assert re.search(r"^phrasetool: prune: \d+\.\d\d s$", outcome.err, re.MULTILINE)
    assert re.fullmatch(r"phrasetool: prune: \d+\.\d\d s in all", messages[-1])
    # The messages of the run without -v are among them.
    assert set(plain.err.splitlines()) <= set(messages)


def test_values_are_those_that_were_typed(table, tmp_path):
    write(tmp_path / "t", b"a ||| b ||| 0.1 0.1 0.1 0.5 0.5\n")
    (tmp_path / "phrasetool.toml").write_text("[prune]\nblock-bytes = '1M'\nprotect-frequent = 'none'\n")
    outcome = run_inside("prune", "t", "--similarity-columns", "4,5", "--target-size", "30%", "-v", "--json", "-")
    messages = outcome.err.splitlines()
    for expected in (
        "TABLE: t", "--similarity-columns: 4,5", "--target-size: 30%", "--translator-score: softmax  (default)",
        "--block-bytes: 1M  (configuration)", "--protect-frequent: none  (configuration)", "--max-line: 16M  (default)",
        "--json: -", "--sort: false  (default)", "--seed: 1  (default)",
    ):  # fmt: skip
        assert f"phrasetool: {expected}" in messages
    messages = run_inside("align", "none", "t", "--model", "1", "-v").err.splitlines()
    assert "phrasetool: --aligner-model: 1" in messages


def test_training_accepts_verbose(tmp_path):
    outcome = run_inside("train", "autoencoder", "-v", tmp_path / "none", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert f"{tmp_path / 'none'}: No such file" in outcome.err.splitlines()[-1]


def test_verbosity_does_not_affect_the_next_command(table):
    assert "version" in run_inside("inspect", table, "--verbose").err
    assert run_inside("inspect", table).err == ""


@pytest.mark.parametrize("arguments", [("-q", "-v"), ("-v", "-q"), ("--verbose", "--quiet")])
def test_quiet_and_verbose_exclude_each_other(table, arguments):
    outcome = run_inside("inspect", table, *arguments)
    assert outcome.code == 2
    assert outcome.message == "phrasetool: give --quiet or --verbose, not both (see `phrasetool inspect --help`)"
