"""Files in the output folder of an experiment."""

import json
import os
from importlib.metadata import PackageNotFoundError

import pandas as pd
import pytest

from moses_compat.experiments import experiment
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.experiment import FRAMES, records_of, write_outputs
from moses_compat.experiments.session import Session, read_experiment_texts
from phrasetool.watch import SILENT
from tests.moses_compat.experiments.report.report_frames import contests, pruning
from tests.small_experiment import write_experiment


@pytest.fixture
def session(tmp_path, monkeypatch):
    path = write_experiment(tmp_path, '[prune]\nmethods = ["count"]\nsizes = 0.5\n# "ü"\n')
    monkeypatch.chdir(tmp_path)
    config = read_experiment_config(str(path))
    os.mkdir(config.output)
    return Session(config, read_experiment_texts(config), 1, SILENT)


def test_files(session, tmp_path):
    session.commands["lm"] = "phrasetool lm"
    session.part("texts")
    frame = pruning(("words",))
    write_outputs(session, {"pruning": frame}, 2)
    assert sorted(os.listdir(tmp_path / "out")) == [
        "curves.svg", "experiment.json", "pruning.parquet", "report.html", "report.md"
    ]  # fmt: skip
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out" / "pruning.parquet"), frame)
    facts = json.loads((tmp_path / "out" / "experiment.json").read_bytes())
    assert facts["name"] == "experiment"
    assert facts["commands"] == {"lm": "phrasetool lm"}
    assert list(facts["seconds"]) == ["texts"]
    assert facts["config"]["text"] == (tmp_path / "experiment.toml").read_text()
    # Paths are relative to the working directory.
    assert facts["config"]["bitext"] == {"source": "train.src", "target": "train.trg"}
    assert facts["config"]["prune"]["sizes"] == [0.5]
    assert {"phrasetool", "python", "numpy", "sacrebleu"} <= facts["versions"].keys()
    assert '# "ü"' in (tmp_path / "out" / "report.md").read_text()


def test_packages_that_are_not_installed_have_no_version(session, tmp_path, monkeypatch):
    def version(name):
        if name in ("torch", "eflomal"):
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(experiment, "version", version)
    write_outputs(session, {}, 2)
    versions = json.loads((tmp_path / "out" / "experiment.json").read_bytes())["versions"]
    assert versions["numpy"] == "1.0"
    assert not {"torch", "eflomal"} & versions.keys()


def test_what_is_no_longer_asked_for_goes(session, tmp_path):
    out = tmp_path / "out"
    for name in (*FRAMES, "mine"):
        (out / f"{name}.parquet").write_text("old")
    write_outputs(session, {"contests": contests((0.1, 0.25, 0.002))}, 2)
    assert sorted(path.name for path in out.glob("*.parquet")) == ["contests.parquet", "mine.parquet"]


def test_rows_as_json_values():
    frame = pd.DataFrame({"text": ["ü", "b"], "bleu": [0.1, float("nan")], "seeds": [[1, 2], []]})
    rows = [{"text": "ü", "bleu": 0.1, "seeds": [1, 2]}, {"text": "b", "bleu": None, "seeds": []}]
    assert records_of({"pruning": frame}) == {"pruning": rows}
