"""An experiment on its way: what is wanted, how long each part took, and who is told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from moses_compat.engine.model import LoadProgress, MosesModel
from moses_compat.experiments.texts import ExperimentTexts
from phrasetool.experiments.settings import ExperimentConfig


class Watch(Protocol):
    """Who is told how an experiment goes."""

    def say(self, message: str) -> None:
        """Something is done, or begins."""

    def warn(self, message: str) -> None:
        """Something is not as it should be, but the experiment goes on."""

    def table(self, label: str, size: int) -> AbstractContextManager[Callable[[int, int], None]]:
        """Reading a file of this many bytes; what it gives is called with the bytes and the entries read so far."""

    def sentences(self, label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Translating this many sentences; what it gives is called with how many more are done."""

    def loading(self, model: MosesModel) -> AbstractContextManager[LoadProgress]:
        """Reading the tables of a model."""


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
