"""Experiments run from Python: parts run in order, only once, and are reported."""

import json
from pathlib import Path

import pytest

from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.experiment import run_experiment
from phrasetool.errors import PhraseToolError
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.small_experiment import INI, write_experiment

MORE = """\
[prune]
methods = ["count", "probability"]
sizes = [0.5, 0.001]
[annotate]
tuning_seeds = 1
columns = "kneser-ney"
iterations = 2
"""
# No such program, because nothing has to be built.
SILENT = ["/there/is/no/such/program"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return read_experiment_config(str(write_experiment(tmp_path_factory.mktemp("experiment") / "x", MORE)))


def test_parts_are_done_once(config):
    first = RecordingWatch()
    frames = run_experiment(config, SILENT, 1, 3, first)
    assert list(frames) == ["pruning", "contests", "surprises", "annotation"]
    assert first.warned == []
    skipped, *counted = first.said
    assert skipped.startswith("no table that small: count 0.1 % and 1 more left out (")
    folder = Path(config.path).parent
    assert counted == [
        "3 tables to compare, 3 to translate with",
        f"{folder / 'moses.ini'}: its paths are relative to {folder}, because table.gz does not "
        "exist in the working directory, where Moses looks", "2 tunings, 2 to do",
        f"report: {config.output}/report.html",
    ]  # fmt: skip
    dev, tests = 12, 15 + 10
    sentences = 3 * (dev + tests), 2 * (2 * dev + dev + tests)
    assert [label for label, _ in first.begun] == ["measure", "translate", "load", "tune"]
    assert first.begun[2] == ("load", str(Path(config.path).parent / "table.gz"))
    assert first.done == [("translate", sentences[0]), ("tune", sentences[1])]
    facts = json.loads((Path(config.output) / "experiment.json").read_text())
    assert facts["commands"] == {}
    assert list(facts["seconds"]) == [
        "texts", "build", "measure", "all pruning runs, when they were done", "pruning",
        "all tuning runs, when they were done", "annotation",
    ]  # fmt: skip
    assert ", 3 cores, Python " in facts["machine"]

    again = RecordingWatch()
    for name, frame in run_experiment(config, SILENT, 2, 3, again).items():
        assert frame.equals(frames[name])
    assert [label for label, _ in again.begun] == ["measure", "translate", "tune"]
    assert again.done == [("translate", 0), ("tune", 0)]


def test_a_program_that_is_not_there(tmp_path):
    """The similarities of a model are computed by a command."""
    path = write_experiment(tmp_path, '[prune]\nmethods = ["semantic"]\nsizes = 0.5\n')
    with pytest.raises(FileNotFoundError, match="no/such/program"):
        run_experiment(read_experiment_config(str(path)), SILENT)
    assert not (tmp_path / "out" / "experiment.json").exists()


def test_what_is_wrong_is_found_before_anything_is_done(tmp_path):
    path = write_experiment(tmp_path, '[prune]\nmethods = ["count"]\nsizes = 0.5\n')
    config = read_experiment_config(str(path))
    (tmp_path / "moses.ini").write_text(INI.replace("LM0= 0.4\n", ""))
    with pytest.raises(PhraseToolError, match=r"moses\.ini:10: \[weight\] has no line LM0="):
        run_experiment(config, SILENT)
    (tmp_path / "moses.ini").write_text(INI)
    (tmp_path / "lm.arpa").unlink()
    with pytest.raises(PhraseToolError, match=r"lm\.arpa: "):
        run_experiment(config, SILENT)
    assert not (tmp_path / "out").exists()


def test_who_knows_the_development_set_is_told(tmp_path):
    path = write_experiment(tmp_path, '[prune]\nmethods = ["count"]\nsizes = 0.5\n')
    for side in ("src", "trg"):
        lines = (tmp_path / f"train.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"dev.{side}").write_text("".join(lines[:5]) + "x\n")

    class Stopping(RecordingWatch):
        def warn(self, message):
            super().warn(message)
            raise PhraseToolError("enough")

    watch = Stopping()
    with pytest.raises(PhraseToolError, match="enough"):
        run_experiment(read_experiment_config(str(path)), SILENT, watch=watch)
    assert watch.warned == ["5 of 6 sentence pairs of the development set are in the training set"]
