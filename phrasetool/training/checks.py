"""Checks of training: implausible input, divergence, and models that are no better than chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool.watch import Watch, refuse

# An error is too high when it has risen by this many times the smallest one before.  With every
# loss and encoder on an eighth of the pairs of Multi30k German-English, no error rose at all: each was at most 0.98
# times the smallest one before.
_TIMES = 9.0
# Where nearly nothing is left of an error, noise is many times it; this share of the error at the start is little.
_LITTLE = 0.01
# Below this an error is as good as zero in every loss: a first batch may by chance have nothing to learn.
_NEXT_TO_NOTHING = 0.1
# The errors of a line of the log, in the order in which they are looked for.
_ERRORS = {"joint_error": "joint error", "cross_entropy": "cross-entropy", "loss": "loss"}


@dataclass(frozen=True)
class StartError:
    """What an error is before the first iteration.

    Attributes:
        error: of a batch.
        least: a change that is small beside it.
    """

    error: float
    least: float

    @classmethod
    def of(cls, error: float, unbounded: float = 0.0) -> StartError:
        """The error at the start.

        Args:
            error: of a batch.
            unbounded: for errors that can be below zero, what they change by in any case; else 0.
        """
        return cls(error, max(abs(error), unbounded) if unbounded else _LITTLE * error)


class DivergedError(PhraseToolError):
    """A training whose parameters are of no use any more."""


def divergence(history: Iterable[Mapping[str, Any]], starts: Mapping[str, StartError]) -> str | None:
    """What is wrong with the last line of a log; None if nothing is.

    Args:
        history: the lines of the log, at least one.
        starts: the error before the first iteration, by the phase of training.

    Returns:
        Such as `the joint error is nan`.
    """
    *before, last = history
    key = next(key for key in _ERRORS if key in last)
    error, phase = last[key], last.get("phase", "train")
    if not math.isfinite(error):
        return f"the {_ERRORS[key]} is {error}"
    start = starts[phase]
    best = min([start.error, *(line[key] for line in before if line.get("phase", "train") == phase)])
    if error - best > _TIMES * max(abs(best), start.least, _NEXT_TO_NOTHING):
        return f"the {_ERRORS[key]} is {error:.4g}, it was {best:.4g} {'before' if before else 'at the start'}"
    return None


def guessing(folder: Path, fault: str, learning_rate: float) -> DivergedError:
    """Of a model that is no better than guessing.

    Args:
        folder: where it was trained.
        fault: how that was seen.
        learning_rate: that it was trained with.
    """
    message = f"{folder}: the trained model is no better than chance: {fault}"
    advice = f"train anew with a smaller learning rate than {learning_rate:g}, or with more epochs"
    return DivergedError(f"{message}; {advice}", remedy="keep a poor model")


# Told of what makes no sense: raises, or warns and lets it pass.
Doubt = Callable[[str], None]


def doubting(watch: Watch, force: bool) -> Doubt:
    """What stops at the first doubt, or with `force` warns and goes on."""

    def doubt(message: str) -> None:
        refuse(PhraseToolError(message, remedy="go on"), force, watch.warn)

    return doubt
