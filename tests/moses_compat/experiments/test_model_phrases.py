"""Neighbours and a map of phrases by the models of an experiment."""

import pytest

from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.experiment import phrase_frames
from moses_compat.experiments.session import Session, read_experiment_texts
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.small_experiment import small_model, write_experiment


def session_of(folder, more):
    config = read_experiment_config(str(write_experiment(folder, more)))
    small_model(2).save(folder / "alone")
    return Session(config, read_experiment_texts(config), 1, RecordingWatch())


@pytest.fixture
def plan(tmp_path):
    """Return a plan with the paths of `session_of`."""
    paths = (str(tmp_path / name) for name in ("moses.ini", "table.gz", "model", "alone"))
    ini, pairs, model, alone = paths
    return BuildPlan(ini, pairs=pairs, models={6: model}, dimension=6, unsupervised=alone)


def test_both_models_side_by_side(tmp_path, plan):
    session = session_of(tmp_path, '[neighbours]\nphrases = ["a", "v w", "nobody knows"]\ncount = 2\n')
    frames = phrase_frames(session, plan)
    assert list(frames) == ["map", "neighbours"]
    result = frames["neighbours"]
    assert list(dict.fromkeys(result["model"])) == ["RAE", "BRAE"]
    assert result.groupby(["model", "phrase"]).size().tolist() == [2] * 4
    assert set(result.loc[result["phrase"] == "v w", "language"]) == {"target"}
    assert session.watch.warned == ["no model knows a word of 'nobody knows', so it has no neighbours"]
    assert [label for label, _ in session.watch.begun] == ["read pairs", "read pairs"]


def test_frequent_phrases_are_chosen(tmp_path, plan):
    session = session_of(tmp_path, "[neighbours]\n")
    plan.unsupervised = None
    result = phrase_frames(session, plan)["neighbours"]
    assert set(result["model"]) == {"BRAE"}
    assert set(result["language"]) == {"source", "target"}
    assert (result["phrase"].str.split().str.len() > 1).all()


def test_a_map_alone_and_nothing(tmp_path, plan):
    session = session_of(tmp_path, '[annotate]\ncolumns = "semantic"\n')
    assert list(phrase_frames(session, plan)) == ["map"]
    plan.dimension = 7
    assert phrase_frames(session, plan) == {}
