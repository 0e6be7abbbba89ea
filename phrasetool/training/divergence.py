"""Whether a training has left the path: its error is no number any more, or far above what it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from phrasetool.errors import PhraseToolError

# An error is too high above this many times the smallest one before.  Where training goes well errors fall: in twelve
# trainings on the forced-decoding pairs of Multi30k German-English (every loss and encoder) none rose above 1.2 times.
_TIMES = 10.0
# Where nearly nothing is left of an error, noise is many times it; this share of the error at the start is little.
_LITTLE = 0.01
# The errors of a line of the log, in the order in which they are looked for.
_ERRORS = {"joint_error": "joint error", "cross_entropy": "cross-entropy"}


class DivergedError(PhraseToolError):
    """A training whose parameters are of no use any more."""


def divergence(history: Iterable[Mapping[str, Any]], starts: Mapping[str, float]) -> str | None:
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
    best = min([start, *(line[key] for line in before if line.get("phase", "train") == phase)])
    if error > _TIMES * max(best, _LITTLE * start):
        return f"the {_ERRORS[key]} is {error:.4g}, it was {best:.4g} {'before' if before else 'at the start'}"
    return None
