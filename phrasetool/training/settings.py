"""Hyper-parameters, with the paper's values as defaults where the paper has one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from phrasetool.encoders.rae import RaeParameters
from phrasetool.phrases import FloatArray

LOSSES = ("in-batch", "max-margin")
OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("constant", "linear")
STARTS = ("averaging", "normal")


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides what training does.

    Attributes:
        loss: `max-margin` (the paper's, co-training with SGD) or `in-batch` (both languages at once).
        dimension: n.
        iterations: passes over the pairs at most.
        pretrain_iterations: passes that train each RAE alone first.
        seed: fixes everything.
        alpha: weight of the reconstruction error; the semantic error has 1 - alpha (Eq. 10).
        learning_rate: step size (eta in Eq. 14).
        schedule: `constant`, or `linear`: the step size falls to nothing over the iterations.
        batch_size: pairs per update.
        optimizer: `sgd` or `adam`.
        lambda_words, lambda_rec, lambda_sem: L2 weights of word vectors, of W1 W2 b1 b2, of Wl bl.
        margin: of max-margin (Eq. 12).
        temperature: of in-batch.
        smoothing: label smoothing of in-batch.
        unknown_rate: chance that a word seen once in training is read as unknown, which trains the unknown word.
        vector_scale: root mean square of a word-vector component at the start.
        start: `averaging` (a parent is about the mean of its children) or `normal` (the paper's) for W1, W2, Wl.
    """

    loss: str = "in-batch"
    dimension: int = 50
    iterations: int = 25
    pretrain_iterations: int = 0
    seed: int = 1
    alpha: float = 0.1
    learning_rate: float = 0.006
    schedule: str = "linear"
    batch_size: int = 512
    optimizer: str = "adam"
    lambda_words: float = 0.0
    lambda_rec: float = 0.0
    lambda_sem: float = 0.0
    margin: float = 1.0
    temperature: float = 0.1
    smoothing: float = 0.25
    unknown_rate: float = 0.1
    vector_scale: float = 0.3
    start: str = "averaging"

    def __post_init__(self) -> None:
        self._require(self.loss in LOSSES, "loss", f"one of {', '.join(LOSSES)}")
        self._require(self.optimizer in OPTIMIZERS, "optimizer", f"one of {', '.join(OPTIMIZERS)}")
        self._require(self.schedule in SCHEDULES, "schedule", f"one of {', '.join(SCHEDULES)}")
        for name in ("dimension", "batch_size"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        for name in (
            "iterations", "pretrain_iterations", "lambda_words", "lambda_rec", "lambda_sem", "margin"
        ):  # fmt: skip
            self._require(getattr(self, name) >= 0, name, "0 or more")
        self._require(self.temperature >= 0.03, "temperature", "at least 0.03")
        for name in ("learning_rate", "vector_scale"):
            self._require(getattr(self, name) > 0, name, "more than 0")
        self._require(self.start in STARTS, "start", f"one of {', '.join(STARTS)}")
        for name in ("alpha", "unknown_rate", "smoothing"):
            self._require(0 <= getattr(self, name) <= 1, name, "between 0 and 1")

    def _require(self, good: bool, name: str, expected: str) -> None:
        if not good:
            raise ValueError(f"{name} is {getattr(self, name)!r}, expected {expected}")

    @classmethod
    def for_loss(cls, loss: str, **changes: Any) -> TrainingSettings:
        """The defaults of a loss, with changes; a change that is None is ignored.

        Raises:
            ValueError: an unknown loss or setting, or a value out of range.
        """
        known = {field.name for field in fields(cls)}
        unknown = set(changes) - known
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(PRESETS.get(loss, cls(loss=loss)), **given)

    def as_dict(self) -> dict[str, Any]:
        """For `config.json`."""
        return asdict(self)


def initial_parameters(word_vectors: FloatArray, start: str, rng: np.random.Generator) -> RaeParameters:
    """Parameters to start from.

    Args:
        word_vectors: shape (V, n).
        start: one of `STARTS`.
        rng: source of randomness.
    """
    make = RaeParameters.averaging if start == "averaging" else RaeParameters.random
    return make(word_vectors, rng)


def batch_size_for(pairs: int) -> int:
    """A batch size that leaves at least some 32 updates in an iteration: a power of two from 32 to 512."""
    size = 512
    while size > 32 and pairs < 32 * size:
        size //= 2
    return size


PRESETS = {
    "in-batch": TrainingSettings(),
    # Section 4.1 of the paper; batch_size and pretrain_iterations, on which it is silent, are ours.
    "max-margin": TrainingSettings(
        loss="max-margin",
        alpha=0.15,
        learning_rate=0.01,
        schedule="constant",
        batch_size=64,
        optimizer="sgd",
        lambda_words=1e-2,
        lambda_rec=1e-3,
        lambda_sem=1e-3,
        pretrain_iterations=5,
        start="normal",
    ),
}
