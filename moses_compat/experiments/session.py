"""An experiment on its way: what is wanted, how long each part took, and who is told."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from moses_compat.experiments.text_sets import ExperimentTexts
from phrasetool.experiments.settings import ExperimentConfig
from phrasetool.watch import Watch


@dataclass
class Session:
    """An experiment on its way.

    Attributes:
        config: what is wanted.
        texts: the development set and the test sets.
        threads: for everything.
        watch: is told how it goes.
        seconds: how long each part took.
        commands: how to do parts of it by hand.
        began: when the current part began.
    """

    config: ExperimentConfig
    texts: ExperimentTexts
    threads: int
    watch: Watch
    seconds: dict[str, float] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def part(self, name: str) -> None:
        """A part is done."""
        now = time.monotonic()
        self.seconds[name] = round(now - self.began, 3)
        self.began = now

    def path(self, *names: str) -> str:
        """A file of the experiment's folder."""
        return os.path.join(self.config.output, *names)
