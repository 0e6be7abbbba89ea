"""`--json` means one thing in every command that has it."""

import json
import os
from pathlib import Path

import click
import pytest

from phrasetool_cli.main import COMMANDS, cli
from tests.commands import run_inside, write
from tests.tables import TABLES

# These make nothing but files that say themselves what they are, or run others.
WITHOUT = {"train", "ems-prune", "moses-ini", "experiment", "demo", "compile"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "t", TABLES["lattice"]).name


def options_of(name):
    with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
        command = cli.get_command(overview, name)
        with click.Context(command, parent=overview) as context:
            return {spelling: option for option in command.get_params(context) for spelling in option.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_it_and_says_more_or_less(name):
    options = options_of(name)
    if name != "ems-prune":  # whose options are those of prune
        assert {"-q", "-v", "--quiet", "--verbose"} <= options.keys()
    assert ("--json" in options) == (name not in WITHOUT)
    if name not in WITHOUT:
        assert "one JSON document" in options["--json"].help


COMMAND_LINES = {
    "prune": ("-t", "-1", "-o", "out"),
    "annotate": ("-o", "out"),
    "filter-pt": ("-n", "2", "-i", "0", "-o", "out"),
    "convert": ("-o", "out.parquet"),
    "inspect": (),
}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_the_document_is_the_same_in_a_file_and_on_standard_output(table, model_folder, name):
    model = ("-m", model_folder) if name in ("prune", "annotate") else ()
    arguments = (name, table, *COMMAND_LINES[name], *model, "-q")
    printed = run_inside(*arguments, "--json", "-")
    assert (printed.code, printed.err) == (0, "")
    document = json.loads(printed.out)
    assert document["schema_version"] == 1
    assert document["entries"] == TABLES["lattice"].count(b"\n")
    assert run_inside(*arguments, "--json").out == printed.out
    assert run_inside(*arguments, "--json", "found.json").code == 0
    assert Path("found.json").read_bytes() == printed.out
    # What was written before may be written again.
    assert run_inside(*arguments, "--json", "found.json").code == 0


@pytest.mark.parametrize("name", ["prune", "annotate", "filter-pt"])
def test_not_together_with_the_table(table, model_folder, name):
    model = ("-m", model_folder) if name != "filter-pt" else ()
    done = run_inside(name, table, *COMMAND_LINES[name][:-1], "-", *model, "--json", "-")
    assert (done.code, done.out) == (2, b"")
    assert "--json and the output both go to standard output" in done.message


def test_a_file_that_holds_something_else_stays(table):
    Path("text").write_text("das ist kein JSON\n")
    done = run_inside("inspect", table, "--json", "text")
    assert done.code == 2
    assert "--json text: this file is there and is no JSON" in done.message
    assert Path("text").read_text() == "das ist kein JSON\n"


def test_nothing_appears_where_a_command_fails(table, model_folder):
    Path("t").write_bytes(b"faulty\n")
    done = run_inside("prune", table, "-m", model_folder, "-t", "-1", "-o", "out", "--json", "found.json")
    assert done.code == 1
    assert os.listdir() == ["t"]


def test_where_it_cannot_be_written_nothing_is(table, model_folder):
    done = run_inside("prune", table, "-m", model_folder, "-t", "-1", "-o", "out", "--json", "no/found.json")
    assert done.code == 1
    assert "no/found.json: cannot write" in done.message
    assert os.listdir() == ["t"]


def test_other_kinds_of_files_and_models(table, model_folder):
    Path("found.minphr").write_bytes(b"")
    assert "PhraseDictionaryCompact" in json.loads(run_inside("inspect", "found.minphr", "--json", "-").out)["kind"]
    model = json.loads(run_inside("inspect", model_folder, "--json", "-").out)
    assert model["kind"] == "model"
    assert model["words"].keys() == {"source", "target"}
