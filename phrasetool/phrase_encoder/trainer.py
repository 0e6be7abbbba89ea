"""Training on phrase pairs, from pairs to a model folder: pre-training, then iterations of an objective.

Co-training (section 3.3.3 of the BRAE paper): (1) each encoder is pre-trained alone; (2) with the target's phrase
vectors frozen the source side is updated, with the source's frozen the target side, then the joint error over the
corpus is computed; (3) stop at a local minimum of the joint error or after all iterations, else swap in the new
vectors and go to (2).  A joint objective has ordinary epochs, on both sides together, in place of (2).

On CPU, two threads process the two languages, and meet once per batch (or, in co-training, per iteration).
Results do not depend on how the threads are scheduled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phrasetool.embeddings.training import initial_vectors
from phrasetool.nn.device import choose_device, device_name
from phrasetool.phrase_encoder.encoder import EncoderParameters
from phrasetool.phrase_encoder.losses import CoTrainingObjective, JointObjective
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.scoring import Calibration
from phrasetool.phrase_encoder.settings import PAIRS, TrainingSettings
from phrasetool.phrase_encoder.start import check_one_space
from phrasetool.phrase_encoder.updates import CoTraining, JointTraining, Sides, parts
from phrasetool.training.data import PhrasePairs, held_out_rare_pairs
from phrasetool.training.loop import Tick, Trainer, optimizer_tensors, restore_optimizer, train, write_log
from phrasetool.training.run import DivergedError, ProblemHandler, StartError, TrainingRun

_NAMES = ("source", "target")
# Minimum number of pairs on which the initial error of plain SGD is measured.
_START_PAIRS = 64


@dataclass(frozen=True)
class IterationReport:
    """One line of `training.jsonl`.

    Attributes:
        phase: `pretrain` or `train`.
        iteration: from 1, within the phase.
        reconstruction_error: mean E_rec per pair, both sides added.
        semantic_error: mean semantic error per pair, both directions added; None while pre-training.
        joint_error: alpha * reconstruction + (1 - alpha) * semantic + the L2 terms.
        accuracy_at_1, auc: measured on the held-out pairs, see `neighbours.evaluate_pairs`; None while pre-training, or
            if no pairs are held out.
    """

    phase: str
    iteration: int
    reconstruction_error: float
    semantic_error: float | None
    joint_error: float
    accuracy_at_1: float | None = None
    auc: float | None = None


class PhraseTrainer(Trainer[IterationReport]):
    """Trains an encoder and a transformation per language on phrase pairs.

    Args:
        pairs: the training pairs.
        settings: hyper-parameters of training.
        source, target: initial parameters.
        device: device that computes.
        held_out: pairs to measure accuracy and AUC on after every iteration.

    Attributes:
        iteration: iterations done in the current phase.
        phase: `pretrain` or `train`.
        rng: random generator of the draws that both languages share.
        finished: whether the joint error has reached a local minimum, or all iterations are done.
    """

    def __init__(
        self,
        pairs: PhrasePairs,
        settings: TrainingSettings,
        source: EncoderParameters,
        target: EncoderParameters,
        device: torch.device | None = None,
        held_out: PhrasePairs | None = None,
    ) -> None:
        self.settings = settings
        self.pairs = pairs
        self._held_out = held_out
        self.rng = np.random.default_rng(settings.seed)
        self._sides = Sides(pairs, settings, (source, target), device or torch.device("cpu"))
        objective = settings.objective
        self._method: CoTraining | JointTraining
        if isinstance(objective, CoTrainingObjective):
            self._method = CoTraining(self._sides, settings, objective)
        else:
            assert isinstance(objective, JointObjective)
            self._method = JointTraining(self._sides, settings, objective)
        self.phase = "pretrain" if settings.pretrain_iterations else "train"
        self.iteration = 0
        self.finished = settings.iterations == 0 and not settings.pretrain_iterations
        self._last_error = np.inf
        # With a constant step size, the parameters with the smallest joint error, and whether it has risen since.
        self._best: tuple[EncoderParameters, EncoderParameters] | None = None
        self._rose = False
        self._iterations_since_best = 0
        # MKL selects its kernels at the first call.  Two threads that race there can get different ones, and different
        # last bits in their first batch: observed once in about twenty runs whose libraries were not in memory yet.
        # Therefore one thread first makes the calls that the two will make.
        # A batch of a few pairs, as plain SGD uses, is a poor estimate of the error of all.
        size = max(settings.batch_size, _START_PAIRS) if settings.optimizer == "sgd" else settings.batch_size
        batch = np.arange(min(size, len(pairs)))
        self._method.warm_up(batch)
        reconstruction, semantic = self._method.errors(batch)
        self._start_errors = {
            "pretrain": self._joint(reconstruction, None), "train": self._joint(reconstruction, semantic),
        }  # fmt: skip

    def start_errors(self) -> dict[str, StartError]:
        """Return the joint error of a first batch before the first iteration, by the phase of training."""
        bounded = self.settings.objective.bounded
        unbounded = {"pretrain": 0.0, "train": 0.0 if bounded else float(self.settings.dimension)}
        return {phase: StartError.of(error, unbounded[phase]) for phase, error in self._start_errors.items()}

    # The state that a checkpoint keeps.

    def tensors(self) -> dict[str, Tensor]:
        """Return every tensor needed to resume: parameters and optimiser state, on CPU."""
        tensors: dict[str, Tensor] = {}
        parameters = self.parameters()
        for which, (name, side) in enumerate(zip(_NAMES, self._sides, strict=True)):
            for key, array in parameters[which].arrays().items():
                tensors[f"{name}.{key}"] = torch.from_numpy(array)
            tensors.update(optimizer_tensors(side.optimizer, f"{name}.optimizer."))
            if self._best is not None and not self._rose:
                for key, array in self._best[which].arrays().items():
                    tensors[f"{name}.best.{key}"] = torch.from_numpy(array)
        return {name: value.cpu().contiguous() for name, value in tensors.items()}

    def progress(self) -> dict[str, Any]:
        """Return everything else needed to resume, as JSON values."""
        return {
            "phase": self.phase,
            "iteration": self.iteration,
            "finished": self.finished,
            "last_error": None if np.isinf(self._last_error) else self._last_error,
            "rng": self.rng.bit_generator.state,
            "start_errors": self._start_errors,
            "iterations_since_best": self._iterations_since_best,
        }

    @classmethod
    def resumed(
        cls,
        pairs: PhrasePairs,
        settings: TrainingSettings,
        tensors: Mapping[str, Tensor],
        progress: Mapping[str, Any],
        device: torch.device | None = None,
        held_out: PhrasePairs | None = None,
    ) -> PhraseTrainer:
        """Return a trainer that resumes from `tensors` and `progress`.

        Raises:
            KeyError, RuntimeError, ValueError: they belong to other settings or pairs.
        """
        source, target = (settings.kind.parameters(_arrays(tensors, f"{name}.")) for name in _NAMES)
        trainer = cls(pairs, settings, source, target, device, held_out)
        for name, side in zip(_NAMES, trainer._sides, strict=True):
            restore_optimizer(side.optimizer, tensors, f"{name}.optimizer.")
        best = [_arrays(tensors, f"{name}.best.") for name in _NAMES]
        if best[0]:
            trainer._best = settings.kind.parameters(best[0]), settings.kind.parameters(best[1])
        trainer.phase = progress["phase"]
        trainer.iteration = progress["iteration"]
        trainer.finished = progress["finished"]
        trainer._last_error = np.inf if progress["last_error"] is None else progress["last_error"]
        trainer.rng.bit_generator.state = progress["rng"]
        trainer._iterations_since_best = progress.get("iterations_since_best", 0)
        # Checkpoints of earlier versions lack the start errors; then those at the checkpoint are used.
        trainer._start_errors = progress.get("start_errors", trainer._start_errors)
        return trainer

    def parameters(self) -> tuple[EncoderParameters, EncoderParameters]:
        """Return the current parameters, source first; after a local minimum of the joint error, those that reached it.

        Raises:
            DivergedError: the parameters are no longer finite.
        """
        if self._rose and self._best is not None:
            return self._best
        try:
            source, target = (side.module.numpy() for side in self._sides)
        except ValueError as error:
            raise DivergedError(str(error)) from error
        return source, target

    # Iterations.

    def is_finished(self) -> bool:
        """Return whether training has ended."""
        return self.finished

    def run_epoch(self, tick: Tick) -> IterationReport:
        """Run one iteration of the current phase; see `Trainer`."""
        s = self.settings
        self.iteration += 1
        # One generator per language, so that draws do not depend on the order of the threads.
        own = tuple(np.random.default_rng([s.seed, self.phase == "train", self.iteration, which]) for which in range(2))
        if self.phase == "pretrain":
            report = self._pretrain(own, tick)
            if self.iteration == s.pretrain_iterations:
                self.phase, self.iteration = "train", 0
                self.finished = s.iterations == 0
            return report
        self._set_learning_rate()
        report = self._report(*self._method.iteration(self.rng, own, tick))
        self._judge(report.joint_error)
        return self._measured(report)

    def _measured(self, report: IterationReport) -> IterationReport:
        """Return the report with measures on the held-out pairs, unless the training has diverged."""
        if self._held_out is None or not np.isfinite(report.joint_error):
            return report
        held = self._held_out
        vocabularies = held.source_vocabulary, held.target_vocabulary
        scorer = BilingualModel(*vocabularies, *self.parameters(), self.settings.kind, {}).scorer()
        quality = evaluate_pairs(scorer, held.sources, held.targets, len(vocabularies[1]), seed=self.settings.seed)
        return replace(report, accuracy_at_1=quality.accuracy_at_1, auc=quality.auc_other_targets)

    def _set_learning_rate(self) -> None:
        s = self.settings
        share = 1.0 if s.schedule == "constant" else 1.0 - (self.iteration - 1) / s.iterations
        for side in self._sides:
            for group in side.optimizer.param_groups:
                group["lr"] = group["initial_lr"] * share

    def _judge(self, error: float) -> None:
        """Stop after the last iteration, or at a local minimum of the error, with the parameters that reached it.

        With a falling step size, a rise is noise of the early, large steps, so all iterations are done.
        """
        self.finished = self.iteration >= self.settings.iterations
        if self.settings.schedule != "constant" or not np.isfinite(error):
            return
        if error > self._last_error and self._best is not None:
            self._iterations_since_best += 1
            self.finished = self.finished or self._iterations_since_best >= self.settings.patience
            self._rose = self.finished
            return
        self._last_error, self._iterations_since_best = error, 0
        self._best = self.parameters()

    def _penalty(self) -> float:
        """Return the L2 terms of the joint error (Eq. 11)."""
        total = 0.0
        for side in self._sides:
            for penalty in side.penalties():
                total += penalty
        return total

    def _report(self, reconstruction: float, semantic: float | None) -> IterationReport:
        joint = self._joint(reconstruction, semantic)
        return IterationReport(self.phase, self.iteration, reconstruction, semantic, joint)

    def _joint(self, reconstruction: float, semantic: float | None) -> float:
        """Return the joint error under the current parameters; `semantic` is None while pre-training."""
        alpha = self.settings.alpha if semantic is not None else 1.0
        return alpha * reconstruction + (1 - alpha) * (semantic or 0.0) + self._penalty()

    def _pretrain(self, own: tuple[np.random.Generator, ...], tick: Callable[[int], None]) -> IterationReport:
        """Train each encoder, unsupervised, to minimise its reconstruction error (Eq. 5)."""
        batches = self._sides.batches(self.rng)

        def work(which: int) -> float:
            side = self._sides[which]
            side.begin(own[which])
            if side.compiled and side.compiled.available:
                ordered = side.phrases.select(np.concatenate(batches))
                return side.compiled.run(ordered, None, tick if which == 0 else lambda pairs: None) / len(self.pairs)
            total = 0.0
            for batch, phrases in parts(side.phrases, batches):
                _, errors = side.forward(batch, phrases)
                side.optimizer.zero_grad()
                errors.mean().backward()  # type: ignore[no-untyped-call]
                side.optimizer.step()
                total += float(errors.detach().sum())
                if which == 0:
                    tick(len(batch))
            return total / len(self.pairs)

        return self._report(sum(self._sides.both(work)), None)


def train_model(
    pairs: PhrasePairs,
    settings: TrainingSettings,
    initial: Callable[[], tuple[EncoderParameters, EncoderParameters]],
    run: TrainingRun,
    *,
    start: Sequence[Sequence[str]] | None = None,
    report_problem: ProblemHandler = lambda message: None,
) -> BilingualModel:
    """Train a model and save it.

    Args:
        pairs: the training pairs.
        settings: hyper-parameters of training.
        initial: returns the initial parameters, source first; not called when resuming.
        run: model folder, device and listeners.
        start: identifies the texts, word vectors or autoencoders from which `initial` makes the parameters of each
            language, by their content; None if it makes them from the pairs.
        report_problem: called if nothing is trained and the word vectors seem not to be of one space.

    Raises:
        ModelError: there is a finished model or an unfinished training; or the checkpoint is missing, damaged, or
            belongs to other pairs, settings or initial parameters.
        DivergedError: the learning rate is too large; the last good checkpoint is kept.
        PhraseToolError: the folder cannot be written, or has too little room.
    """
    run.check()
    run.check_space(_space(pairs, settings))
    # A checkpoint is JSON, which has no tuples.
    files = None if start is None else [list(side) for side in start]
    identity = {"pairs": pairs.fingerprint, "initial vectors or encoders": files, "settings": settings.as_dict()}
    if not settings.kind.learns:
        return _untrained(pairs, settings, initial(), run, report_problem)
    held = held_out_rare_pairs(pairs, settings.held_out, settings.seed)
    held_out = pairs.select(np.flatnonzero(held)) if held.any() else None
    pairs = pairs.select(np.flatnonzero(~held)) if held.any() else pairs
    trainer = train(
        run, identity, lambda: PhraseTrainer(pairs, settings, *initial(), run.device, held_out),
        lambda tensors, progress: PhraseTrainer.resumed(pairs, settings, tensors, progress, run.device, held_out),
    )  # fmt: skip
    training = {**settings.as_dict(), "pairs": len(pairs), "iterations_done": trainer.iteration, **run.record}
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    model = BilingualModel(*vocabularies, *trainer.parameters(), settings.kind, training)
    _calibrate(model, pairs, settings)
    run.save(model)
    return model


def _calibrate(model: BilingualModel, pairs: PhrasePairs, settings: TrainingSettings) -> None:
    """Calibrate the cosines of a model on its training pairs, if the settings require it."""
    if settings.calibration == PAIRS:
        model.calibration = Calibration.fit(model.scorer().score_pairs, pairs.sources, pairs.targets, settings.seed)


def _untrained(
    pairs: PhrasePairs,
    settings: TrainingSettings,
    parameters: tuple[EncoderParameters, EncoderParameters],
    run: TrainingRun,
    report_problem: ProblemHandler,
) -> BilingualModel:
    """Save and return a model with the initial parameters."""
    training = {**settings.as_dict(), "pairs": len(pairs), "iterations_done": 0, **run.record}
    model = BilingualModel(pairs.source_vocabulary, pairs.target_vocabulary, *parameters, settings.kind, training)
    check_one_space(model, pairs, report_problem)
    _calibrate(model, pairs, settings)
    write_log(run.folder, [])
    run.save(model)
    return model


def _space(pairs: PhrasePairs, settings: TrainingSettings) -> int:
    """Return the maximum size of word vectors on disk in bytes: of a checkpoint, and of the one that replaces it."""
    words = len(pairs.source_vocabulary) + len(pairs.target_vocabulary)
    # Two moments of Adam, or the best parameters so far.
    copies = 3 if settings.optimizer == "adam" else 2
    return 2 * copies * 4 * words * settings.kind.word_dimension(settings.dimension)


def _arrays(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    """Return the arrays of the tensors with a prefix, by the rest of their names."""
    return {name[len(prefix) :]: tensor.numpy() for name, tensor in tensors.items() if name.startswith(prefix)}


# Number of batches of one timed pass.
_BATCHES = 8


@dataclass(frozen=True)
class DeviceChoice:
    """A device and the reason for its choice.

    Attributes:
        device: the device to train on.
        speeds: device name -> pairs per second; empty if there was no choice.
    """

    device: torch.device
    speeds: dict[str, float]

    @property
    def message(self) -> str:
        """The choice in one line; empty if there was no choice."""
        if not self.speeds:
            return ""
        speeds = ", ".join(f"{name}: {speed:,.0f} pairs/s" for name, speed in self.speeds.items())
        return f"--device auto chose {device_name(self.device)} ({speeds})"


def choose_training_device(
    name: str,
    pairs: PhrasePairs,
    settings: TrainingSettings,
    speed: Callable[[PhrasePairs, TrainingSettings, torch.device], float] | None = None,
) -> DeviceChoice:
    """Choose the device to train on.

    A recursive auto-encoder makes many small steps, which may be slower on a GPU than on a CPU; so `auto` measures.

    Args:
        name: `cpu`, `cuda` (or `cuda:1`), or `auto`: the fastest device.
        pairs: the training pairs.
        settings: training settings.
        speed: measures pairs per second on a device; `training_speed` by default.

    Raises:
        DeviceError: the requested device does not exist.
    """
    device = choose_device(name)
    if name != "auto" or device.type == "cpu":
        return DeviceChoice(device, {})
    candidates: Sequence[torch.device] = (torch.device("cpu"), device)
    speeds = [(speed or training_speed)(pairs, settings, candidate) for candidate in candidates]
    fastest = candidates[int(np.argmax(speeds))]
    return DeviceChoice(fastest, dict(zip(map(device_name, candidates), speeds, strict=True)))


def training_speed(pairs: PhrasePairs, settings: TrainingSettings, device: torch.device) -> float:
    """Measure training speed on a device, in pairs per second.

    Args:
        pairs: the training pairs; a few batches are used.
        settings: training settings.
        device: the device to measure.
    """
    few = pairs.select(np.arange(min(len(pairs), _BATCHES * settings.batch_size)))
    short = replace(settings, iterations=2, pretrain_iterations=0, schedule="linear")
    rng = np.random.default_rng(settings.seed)
    dimension = settings.kind.word_dimension(settings.dimension)
    start = [
        settings.kind.initial(
            initial_vectors(vocabulary, {}, dimension, settings.vector_scale, rng), settings.dimension, settings.start,
            rng,
        )
        for vocabulary in (few.source_vocabulary, few.target_vocabulary)
    ]  # fmt: skip
    seconds = []
    began = time.perf_counter()
    # The first pass compiles and loads kernels, and is not counted.
    for _ in PhraseTrainer(few, short, start[0], start[1], device).run():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
    return len(few) / seconds[-1]
