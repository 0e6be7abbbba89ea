"""`--json` behaves the same in every command that has it."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from phrasetool_cli.main import COMMANDS, cli
from tests.cli.test_train import pair_lines
from tests.commands import COMMAND, clean_environment, run_inside, write
from tests.small_experiment import write_experiment
from tests.tables import TABLES

# Commands without --json; ems-prune takes the options of prune.
WITHOUT = {"ems-prune"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "t", TABLES["lattice"]).name


def options_of(name):
    with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
        command = cli.get_command(overview, name)
        if isinstance(command, click.Group):
            command = command.get_command(overview, "phrases")
        with click.Context(command, parent=overview) as context:
            return {spelling: option for option in command.get_params(context) for spelling in option.opts}


def test_every_command_has_json_quiet_and_verbose():
    for name in COMMANDS:
        options = options_of(name)
        assert ("--json" in options) == (name not in WITHOUT), name
        if name not in WITHOUT:
            assert {"-q", "-v", "--quiet", "--verbose"} <= options.keys(), name
            assert "as JSON" in options["--json"].help, name


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
    # An earlier document may be overwritten.
    assert run_inside(*arguments, "--json", "found.json").code == 0


@pytest.mark.parametrize("name", ["prune", "annotate", "filter-pt"])
def test_the_document_and_the_table_cannot_share_standard_output(table, model_folder, name):
    model = ("-m", model_folder) if name != "filter-pt" else ()
    outcome = run_inside(name, table, *COMMAND_LINES[name][:-1], "-", *model, "--json", "-")
    assert (outcome.code, outcome.out) == (2, b"")
    assert "--json and the output both go to standard output" in outcome.message


def test_a_file_that_is_not_json_is_not_overwritten(table):
    Path("text").write_text("das ist kein JSON\n")
    outcome = run_inside("inspect", table, "--json", "text")
    assert outcome.code == 2
    assert "--json text: this file exists and is not JSON" in outcome.message
    assert Path("text").read_text() == "das ist kein JSON\n"


def test_a_document_follows_the_text_of_an_open_descriptor(table):
    command = shlex.join([*COMMAND, "inspect", str(table), "-q", "--json", "/dev/fd/5"])
    subprocess.run(["sh", "-c", f"(echo before >&5; {command}) 5> both"], env=clean_environment(), check=True)
    before, document = Path("both").read_text().split("\n", 1)
    assert (before, json.loads(document)["schema_version"]) == ("before", 1)


def test_no_document_is_written_if_the_command_fails(table, model_folder):
    Path("t").write_bytes(b"malformed\n")
    outcome = run_inside("prune", table, "-m", model_folder, "-t", "-1", "-o", "out", "--json", "found.json")
    assert outcome.code == 1
    assert os.listdir() == ["t"]


def test_no_output_is_written_if_the_document_cannot_be(table, model_folder):
    outcome = run_inside("prune", table, "-m", model_folder, "-t", "-1", "-o", "out", "--json", "no/found.json")
    assert outcome.code == 1
    assert "no/found.json: cannot write" in outcome.message
    assert os.listdir() == ["t"]


def test_other_kinds_of_files_and_models(table, model_folder):
    Path("found.minphr").write_bytes(b"")
    assert "PhraseDictionaryCompact" in json.loads(run_inside("inspect", "found.minphr", "--json", "-").out)["kind"]
    model = json.loads(run_inside("inspect", model_folder, "--json", "-").out)
    assert model["kind"] == "model"
    assert model["words"].keys() == {"source", "target"}


def json_document(*arguments):
    """Run a command with `--json` and parse its standard output, which must be one JSON document."""
    outcome = run_inside(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document.pop("schema_version") == 1
    return document


def test_train_reports_settings_and_log(tmp_path):
    pairs = write(tmp_path / "pairs", pair_lines())
    model = tmp_path / "m"
    fast = ("--dimension", "6", "--iterations", "2", "--vectors", "random", "-q")
    result = json_document("train", pairs, "-o", model, *fast)
    assert result["model"] == str(model)
    assert result["signature"].startswith("model:")
    assert result["training"] == json.loads((model / "config.json").read_text())["training"]
    assert [line["iteration"] for line in result["log"]] == [1, 2]
    text = write(tmp_path / "text", b"a b c\nb c a\n" * 30)
    options = ("--word-units", "4", "--hidden", "8", "--heads", "2", "--epochs", "3", "-q")
    result = json_document("train", "autoencoder", text, "-o", tmp_path / "a", *options)
    assert [line["epoch"] for line in result["log"]] == [1, 2, 3]
    assert result["training"]["texts"] == 60
    # Inputs are not overwritten, and a command that fails writes no document.
    assert "the output is the input" in run_inside("train", pairs, "-o", tmp_path / "n", *fast, "--json", pairs).message
    vectors = ("--vectors", "word2vec", "--source-text", text, "--json", text)
    assert "the output is the input" in run_inside("train", pairs, "-o", tmp_path / "n", *fast, *vectors).message
    assert run_inside("train", pairs, "-o", model, *fast, "--json", tmp_path / "no.json").code == 1
    assert not (tmp_path / "no.json").exists()
    assert not (tmp_path / "n").exists()


def test_moses_ini_reports_features_and_weights(table, tmp_path):
    write(tmp_path / "lm.arpa", b"\\data\\\nngram 1=1\nngram 2=0\n\n\\1-grams:\n-1\t</s>\n\n\\2-grams:\n\n\\end\\\n")
    arguments = ("moses-ini", "--table", table, "--lm", "lm.arpa")
    result = json_document(*arguments, "-o", "moses.ini")
    assert result["ini"] == "moses.ini"
    table_feature = next(line for line in result["features"] if line["name"] == "TranslationModel0")
    assert table_feature["path"] == str(tmp_path / table)
    assert len(result["weights"]["TranslationModel0"]) == int(table_feature["num-features"])
    outcome = run_inside(*arguments, "--json")
    assert (outcome.code, outcome.out) == (2, b"")
    assert "--json and the output both go to standard output" in outcome.message


def test_experiment_reports_the_rows_of_its_tables(tmp_path):
    config = write_experiment(tmp_path / "x", '[prune]\nmethods = ["count"]\nsizes = [0.6]\n')
    result = json_document("experiment", config, "--threads", "1", "-q")
    assert result["folder"] == str(tmp_path / "x" / "out")
    assert {row["system"] for row in result["pruning"]} == {"full", "count 60 %"}
    again = run_inside("experiment", config, "--threads", "1", "-q", "--json", tmp_path / "found.json")
    assert (again.code, again.out) == (0, b"")
    assert json.loads((tmp_path / "found.json").read_text())["pruning"] == result["pruning"]


def test_demo_reports_files_and_commands(tmp_path):
    result = json_document("demo", "--files", tmp_path / "demo")
    assert "engine/phrase-table.gz" in result["files"]
    assert all((tmp_path / "demo" / name).is_file() for name in result["files"])
    assert [words[:2] for words in result["commands"]] == [
        ["phrasetool", "extract"], ["phrasetool", "lm"], ["phrasetool", "moses-ini"]
    ]  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--demo"]])
def test_compile_reports_where_kernels_are(options, monkeypatch):
    from phrasetool.kernels import building

    def build_all(packages, tick, demo, processes):
        assert demo == bool(options)
        return {package: building.Built(3, f"in {package}") for package in packages}

    monkeypatch.setattr(building, "build_all", build_all)
    result = json_document("compile", "-q", *options)
    assert result["packages"]["moses_compat"] == {"kernels": 3, "place": "in moses_compat"}
    assert list(result["packages"]) == ["phrasetool", "moses_compat"]


@pytest.mark.parametrize("name", ["found.json.gz", "found.json.xz", "found.json"])
def test_an_earlier_document_may_be_overwritten(table, name):
    for _ in range(2):
        assert run_inside("inspect", table, "--json", name).code == 0
