"""Data shared by all parts of an experiment: model, measures, the decoder, which is loaded once, durations, paths."""

import os
from types import SimpleNamespace

import pytest

from moses_compat.experiments import session as session_module
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.session import Session, open_run_context, read_experiment_texts
from phrasetool.pruning.measures import LOSSES, SIGNIFICANCE, SIMILARITIES
from phrasetool.watch import SILENT
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.small_experiment import table_lines, write_experiment

MORE = """\
[prune]
methods = ["composition"]
sizes = 0.5
[search]
algorithm = "stack"
stack = 70
"""


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    folder = tmp_path_factory.mktemp("session") / "x"
    config = read_experiment_config(str(write_experiment(folder, MORE)))
    session = Session(config, read_experiment_texts(config), 1, RecordingWatch())
    return open_run_context(session, BuildPlan(config.moses.ini))


def test_the_search_is_that_of_the_configuration(context):
    search = context.model.search
    # Other settings are those of the ini, or else Moses' defaults.
    assert (search.algorithm, search.stack_size, search.pop_limit, search.table_limit) == ("stack", 70, 1000, 20)


def test_only_what_is_needed_is_measured(context):
    measures = context.measures
    assert len(measures) == len(table_lines())
    assert LOSSES in measures
    assert SIMILARITIES not in measures
    assert SIGNIFICANCE not in measures
    assert list(context.session.seconds) == ["measure"]


def test_the_decoder_is_loaded_when_it_is_asked_for_and_once(context):
    started = context.session.watch.begun
    assert [label for label, _ in started] == ["measure"]
    assert context.load() is context.load()
    assert [label for label, _ in started] == ["measure", "load"]
    assert list(context.load().sentences) == ["dev", "one", "two"]


def test_a_part_lasts_from_the_end_of_the_one_before(monkeypatch):
    clock = iter([12.5, 12.75, 20.0004])
    monkeypatch.setattr(session_module.time, "monotonic", lambda: next(clock))
    current = Session(SimpleNamespace(output="out"), None, 1, SILENT, began=10.0)
    for name in ("measure", "tune", "decode"):
        current.part(name)
    assert current.seconds == {"measure": 2.5, "tune": 0.25, "decode": 7.25}
    assert current.began == 20.0004


def test_files_stand_in_the_folder_of_the_experiment():
    current = Session(SimpleNamespace(output="out"), None, 1, SILENT)
    assert current.path("a", "b.json") == os.path.join("out", "a", "b.json")
    other_session = Session(SimpleNamespace(output="x"), None, 1, SILENT)
    current.commands["table"] = "prune"
    assert other_session.commands == {}
