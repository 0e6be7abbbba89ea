"""An experiment on its way: seconds of its parts, and its files."""

import os
from types import SimpleNamespace

from moses_compat.experiments import session
from moses_compat.experiments.session import Session
from phrasetool.watch import NOBODY


def test_a_part_lasts_from_the_end_of_the_one_before(monkeypatch):
    clock = iter([12.5, 12.75, 20.0004])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(clock))
    current = Session(SimpleNamespace(output="out"), None, 1, NOBODY, began=10.0)
    for name in ("measure", "tune", "decode"):
        current.part(name)
    assert current.seconds == {"measure": 2.5, "tune": 0.25, "decode": 7.25}
    assert current.began == 20.0004


def test_files_stand_in_the_folder_of_the_experiment():
    current = Session(SimpleNamespace(output="out"), None, 1, NOBODY)
    assert current.path("a", "b.json") == os.path.join("out", "a", "b.json")
    other = Session(SimpleNamespace(output="x"), None, 1, NOBODY)
    current.commands["table"] = "prune"
    assert other.commands == {}
