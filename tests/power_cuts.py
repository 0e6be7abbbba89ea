"""Runs that end in the middle."""

import pytest

from moses_compat.files import finished_work
from phrasetool import pipeline


class PowerCut(Exception):
    """The end comes from outside."""


@pytest.fixture
def cut_after(monkeypatch):
    """Lets so many items be worked on, -1 for all, and returns them; what is finished is kept at once."""
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
