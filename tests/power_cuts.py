"""Interruption of runs after a number of work items."""

import pytest

from moses_compat.files import finished_work
from phrasetool import pipeline


class PowerCut(Exception):
    """Simulated loss of power."""


@pytest.fixture
def cut_after(monkeypatch):
    """Function that limits a run to a number of work items (-1: all) and returns a list of the processed ones.

    Finished items are stored immediately.
    """
    monkeypatch.setattr(finished_work, "SECONDS", 0.0)
    recorded = []

    def install(items):
        recorded.clear()

        def run(work_items, work, threads):
            def counted(item):
                if len(recorded) == items:
                    raise PowerCut
                recorded.append(item)
                return work(item)

            return pipeline.run(work_items, counted, threads)

        monkeypatch.setattr(finished_work, "run", run)
        return recorded

    return install
