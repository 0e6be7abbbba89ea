"""Training loop of all model families: epochs with a log and checkpoints, resuming, and the best parameters.

The log, `training.jsonl`, has one JSON line per epoch; the checkpoint is a safetensors file that is replaced
atomically.  Both are written after every epoch.
"""

from __future__ import annotations

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer, SparseAdam

from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.nn.device import subnormals_as_zero
from phrasetool.training.run import (
    CHECKPOINT,
    LOG,
    UNFINISHED_CHECKPOINT,
    DivergedError,
    StartError,
    TrainingRun,
    divergence,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_VERSION = 1
# Prefix of the best parameters in a checkpoint.
_BEST = "best."
# Prefix of the tensors of the only optimizer that most trainers have.
ADAM = "optimizer."
Report = TypeVar("Report", bound="DataclassInstance")
Tick = Callable[[int], None]


def check_identity(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Reject a checkpoint of different data or settings.

    Args:
        folder: the model folder.
        before: identity in the checkpoint, see `phrasetool.training.loop.train`.
        now: identity of the resumed training.

    Raises:
        ModelError: the data or settings differ; the message names each setting that differs, with both values.
    """
    different = []
    for part, value in now.items():
        if part != "settings" and before.get(part) != value:
            different.append(f"the {part} differ")
    settings, chosen = before.get("settings", {}), now["settings"]
    for name in [*chosen, *(name for name in settings if name not in chosen)]:
        if settings.get(name) != chosen.get(name):
            different.append(f"{name} was {settings.get(name)}, not {chosen.get(name)}")
    if different:
        raise ModelError(
            f"{folder / CHECKPOINT}: cannot resume: {', '.join(different)}; use the original data and settings",
            remedy="train again",
        )


def write_log(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    """Write the whole log, without run times so that it is reproducible to the byte.

    Raises:
        PhraseToolError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOG).write_text("".join(json.dumps(line) + "\n" for line in history), "utf-8")
    except OSError as error:
        raise PhraseToolError(f"{folder / LOG}: cannot write: {reason(error)}") from error


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Replace the folder's checkpoint.

    Args:
        tensors: parameters and optimiser state.
        state: other state, as JSON values.

    Raises:
        PhraseToolError: the file cannot be written; the old checkpoint is untouched.
    """
    metadata = {"checkpoint": json.dumps({"version": _VERSION, **state})}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A scratch folder also holds the temporary file of safetensors, which remains if the process is killed.
        with scratch_folder(folder, UNFINISHED_CHECKPOINT) as scratch:
            written = Path(scratch, CHECKPOINT)
            save_file(dict(tensors), written, metadata)
            os.replace(written, folder / CHECKPOINT)
    except (OSError, SafetensorError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise PhraseToolError(f"{folder / CHECKPOINT}: cannot write: {why}") from error


def optimizer_tensors(optimizer: Optimizer, prefix: str) -> dict[str, Tensor]:
    """Return the state of an optimiser as tensors named `prefix` + index of the parameter + `.` + name of the state."""
    return {
        f"{prefix}{index}.{key}": torch.as_tensor(entry)
        for index, state in optimizer.state_dict()["state"].items()
        for key, entry in state.items()
        if entry is not None
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Restore an optimiser from the result of `optimizer_tensors`; tensors with other prefixes are ignored.

    Raises:
        KeyError, RuntimeError, ValueError: the state is of different parameters.
    """
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            index, key = name[len(prefix) :].split(".", 1)
            states.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
    if isinstance(optimizer, SparseAdam):
        # SparseAdam counts steps in an int; powers of an int are more precise than those of a tensor.
        for state in optimizer.state.values():
            state["step"] = int(state["step"])


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the state that `save_checkpoint` wrote.

    Raises:
        ModelError: the checkpoint is missing or damaged.
    """
    with _checkpoint(folder) as (file, state):
        return {name: file.get_tensor(name) for name in file.keys()}, state  # noqa: SIM118


def finished_epochs(folder: Path, resume: bool) -> int:
    """Return the number of epochs (iterations) finished before a training is resumed; 0 for a new training.

    Args:
        folder: the model folder, with the checkpoint.
        resume: whether the training is resumed.

    Raises:
        ModelError: the checkpoint is missing or damaged.
    """
    if not resume:
        return 0
    with _checkpoint(folder) as (_, state):
        return len(state["history"])


@contextlib.contextmanager
def _checkpoint(folder: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open the checkpoint of a folder and read its state; see `load_checkpoint` for errors."""
    path = folder / CHECKPOINT
    if not path.is_file():
        raise ModelError(f"{path}: no checkpoint to resume from")
    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads((file.metadata() or {}).get("checkpoint", "null"))
            if not isinstance(state, dict) or state.get("version") != _VERSION:
                raise ModelError(f"{path}: not a checkpoint of version {_VERSION}")
            yield file, state
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: the checkpoint is damaged ({error})", remedy="train again") from error


class Trainer(ABC, Generic[Report]):
    """Base class of trainers, which train epoch by epoch and can be resumed from their tensors and progress."""

    def run(self, tick: Tick = lambda examples: None) -> Iterator[Report]:
        """Train until finished and yield the report of every epoch.

        Args:
            tick: called with the number of examples processed since the last call.

        Raises:
            DivergedError: parameters are no longer finite.
        """
        while not self.is_finished():
            yield self.run_epoch(tick)

    @abstractmethod
    def is_finished(self) -> bool:
        """Return whether training is finished."""

    @abstractmethod
    def run_epoch(self, tick: Tick) -> Report:
        """Run one epoch and return its report, a line of the log."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors needed to resume."""

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return all other state needed to resume, as JSON values."""

    @abstractmethod
    def start_errors(self) -> dict[str, StartError]:
        """Return the error before the first epoch for each phase of training."""


class EpochTrainer(Trainer[Report]):
    """Trains the parameters of networks; keeps those of the best epoch.

    Args:
        learnt: the trained parameters.
        seed: seed of the random numbers, which depend only on it and the number of the epoch.
        epochs: maximum number of epochs.
        updates: number of updates per epoch.
        patience: number of epochs without improvement after which training ends; None for no limit.

    Attributes:
        epoch: number of finished epochs.
        best: the report of the best epoch; None if epochs are not compared.
    """

    def __init__(
        self, learnt: LearntParameters, seed: tuple[int, ...], epochs: int, updates: int, patience: int | None = None
    ) -> None:
        self.learnt, self.epoch = learnt, 0
        self.best: dict[str, Any] | None = None
        self._seed, self._epochs, self._updates, self._patience = seed, epochs, updates, patience

    def is_finished(self) -> bool:
        """Return whether the last epoch is finished or the patience is exhausted."""
        return self.epoch >= self._epochs or self._is_in_vain()

    def run_epoch(self, tick: Tick) -> Report:
        """Run an epoch and return its report."""
        # Each epoch has a new generator, because checkpoints hold no random state.
        with subnormals_as_zero():
            loss = self._pass(np.random.default_rng([*self._seed, self.epoch + 1]), tick)
        self.epoch += 1
        report = self._report(loss)
        self._judge(asdict(report))
        return report

    def _is_in_vain(self) -> bool:
        if self._patience is None or self.best is None:
            return False
        return bool(self.epoch - self.best["epoch"] >= self._patience)

    def _judge(self, report: dict[str, Any]) -> None:
        goodness = self._goodness(report)
        before = None if self.best is None else self._goodness(self.best)
        if goodness is not None and (before is None or goodness > before):
            self.best = report
            self.learnt.keep()

    @property
    def updates_done(self) -> int:
        """Number of updates in the finished epochs."""
        return self.epoch * self._updates

    def share(self, number: int) -> float:
        """Return the share of all updates that precede update `number` of this epoch, counted from 0."""
        return (self.updates_done + number) / (self._epochs * self._updates)

    @abstractmethod
    def _pass(self, rng: np.random.Generator, tick: Tick) -> float:
        """Train for one epoch and return the mean loss."""

    @abstractmethod
    def _report(self, loss: float) -> Report:
        """Return the report of an epoch with a mean loss."""

    def _goodness(self, report: Mapping[str, Any]) -> float | None:
        """Return the score of an epoch, higher is better; None to keep the last epoch."""
        return None

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the checkpoint."""
        return self.learnt.tensors()

    def progress(self) -> dict[str, Any]:
        """Return the progress of the checkpoint."""
        return {"epoch": self.epoch, "best": self.best}

    def restore(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Resume from tensors and progress.

        Raises:
            KeyError, RuntimeError, ValueError: they are of different settings or data.
        """
        self.learnt.restore(tensors)
        self.epoch, self.best = progress["epoch"], progress["best"]


class LearntParameters:
    """Trained parameters, their optimisers, and the best values so far.

    Args:
        parameters: parameters by name; optimisers change them in place.
        optimizers: optimisers by the prefix of their tensors in a checkpoint; the initial learning rate of each group
            is its full rate.

    Attributes:
        optimizers: the given optimisers.
    """

    def __init__(self, parameters: Mapping[str, Tensor], optimizers: Mapping[str, Optimizer]) -> None:
        self._parameters, self.optimizers = dict(parameters), dict(optimizers)
        self._full = {name: [group["lr"] for group in adam.param_groups] for name, adam in self.optimizers.items()}
        self._best: dict[str, Tensor] = {}

    def scale_rates(self, share: float) -> None:
        """Set the learning rates to a share of the full ones."""
        for name, optimizer in self.optimizers.items():
            for group, full in zip(optimizer.param_groups, self._full[name], strict=True):
                group["lr"] = full * share

    def step(self, loss: Tensor, clip: float | None = None) -> None:
        """Make an update by the gradient of a loss.

        Args:
            loss: a scalar.
            clip: maximum norm of all dense gradients together; sparse gradients are not clipped.
        """
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if clip is not None:
            dense = [leaf for leaf in self._parameters.values() if leaf.grad is not None and not leaf.grad.is_sparse]
            torch.nn.utils.clip_grad_norm_(dense, clip)
        for optimizer in self.optimizers.values():
            optimizer.step()

    def keep(self) -> None:
        """Store the parameters as the best so far."""
        self._best = {name: value.detach().clone() for name, value in self._parameters.items()}

    def take_best(self) -> None:
        """Restore the best values of the parameters; without `keep`, nothing changes."""
        self._load(self._best)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors of a checkpoint, on the CPU."""
        tensors = {name: value.detach() for name, value in self._parameters.items()}
        tensors.update({_BEST + name: value for name, value in self._best.items()})
        for prefix, optimizer in self.optimizers.items():
            tensors.update(optimizer_tensors(optimizer, prefix))
        return {name: value.cpu().contiguous() for name, value in tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the result of `tensors`.

        Raises:
            KeyError, RuntimeError, ValueError: the tensors are of different parameters.
        """
        self._load({name: tensors[name] for name in self._parameters})
        for prefix, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, tensors, prefix)
        if any(name.startswith(_BEST) for name in tensors):
            self._best = {name: tensors[_BEST + name].to(value.device) for name, value in self._parameters.items()}

    @torch.no_grad()
    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in tensors.items():
            self._parameters[name].copy_(value)


Trained = TypeVar("Trained", bound=Trainer[Any])
Epochs = TypeVar("Epochs", bound=EpochTrainer[Any])


def train(
    run: TrainingRun,
    identity: Mapping[str, Any],
    start: Callable[[], Trained],
    resumed: Callable[[dict[str, Tensor], dict[str, Any]], Trained],
) -> Trained:
    """Train until finished, with a log and a checkpoint after every epoch.

    Args:
        run: model folder, device and listeners.
        identity: fingerprints of the training data (first) and the settings, as JSON values.
        start: returns a new trainer; not called when resuming.
        resumed: returns a trainer that resumes from tensors and progress.

    Raises:
        ModelError: the checkpoint is missing, damaged, or of different data or settings.
        DivergedError: the training error is not finite, or far above its minimum; the previous checkpoint is kept.
        PhraseToolError: the folder cannot be written.
    """
    folder = run.folder
    history: list[dict[str, Any]] = []
    if run.resume:
        tensors, state = load_checkpoint(folder)
        data_name = next(iter(identity))
        check_identity(folder, state["identity"], identity)
        history = state["history"]
        try:
            trainer = resumed(tensors, state["progress"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise ModelError(
                f"{folder / CHECKPOINT}: does not match these {data_name} and settings ({error})"
            ) from error
        write_log(folder, history)
    else:
        trainer = start()
    epochs_before = len(history)
    try:
        for report in trainer.run(run.tick):
            history.append(asdict(report))
            tensors = _good_tensors(trainer, history)
            write_log(folder, history)
            state = {"identity": identity, "progress": trainer.progress(), "history": history}
            save_checkpoint(folder, tensors, state)
            epochs_before += 1
            run.on_report(report)
    except DivergedError as error:
        rate = identity["settings"]["learning_rate"]
        kept = f"the checkpoint of iteration {epochs_before} is kept" if epochs_before else "nothing was saved"
        message = f"{folder}: training diverged in iteration {epochs_before + 1}: {error}; {kept}"
        message = f"{message}; train again with a smaller learning rate than {rate:g}"
        if epochs_before:
            raise DivergedError(message, remedy="replace the checkpoint") from error
        raise DivergedError(message) from error
    return trainer


def _good_tensors(trainer: Trainer[Any], history: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint.

    Raises:
        DivergedError: the error rose too far in the last iteration, or a tensor has numbers that are not finite.
    """
    if message := divergence(history, trainer.start_errors()):
        raise DivergedError(message)
    tensors = trainer.tensors()
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise DivergedError(f"{name} has numbers that are not finite")
    return tensors


def train_epochs(run: TrainingRun, identity: Mapping[str, Any], start: Callable[[], Epochs]) -> Epochs:
    """Train networks until finished; see `train` for the arguments and errors."""

    def resumed(tensors: dict[str, Tensor], progress: dict[str, Any]) -> Epochs:
        trainer = start()
        trainer.restore(tensors, progress)
        return trainer

    return train(run, identity, start, resumed)
