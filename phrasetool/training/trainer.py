"""The training loops.

`max-margin` is the paper's co-training (section 3.3.3): (1) each RAE is pre-trained alone; (2) with the target's phrase
vectors frozen the source side is updated, with the source's frozen the target side, then the joint error over the
corpus is computed; (3) stop at a local minimum of the joint error or after so many iterations, else swap in the new
vectors and go to (2).  `in-batch` updates both sides together, in ordinary epochs.

On CPU the two languages are worked on by two threads, which meet once per batch (or, in co-training, per iteration).
Results do not depend on how the threads are scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from phrasetool.distinct import number_distinct
from phrasetool.encoders.rae import RaeParameters
from phrasetool.encoders.rae_torch import RecursiveAutoencoder
from phrasetool.errors import DeviceError
from phrasetool.objectives.in_batch import cosines, in_batch_cross_entropy
from phrasetool.objectives.max_semantic_margin import max_semantic_margin
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.random_words import replace_words
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.settings import TrainingSettings
from phrasetool.vocabulary import UNKNOWN

_ENCODE_AT_ONCE = 4096
First = TypeVar("First")
Second = TypeVar("Second")


def choose_device(name: str) -> torch.device:
    """`cpu`, `cuda` (or `cuda:1`), or `auto`: the GPU if there is one.

    Raises:
        DeviceError: the device was asked for and is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise DeviceError(f"device {name} was asked for, but this machine has no usable GPU; use --device cpu or auto")
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(f"unknown device {name!r}; expected cpu, cuda or auto")
    return device


@dataclass(frozen=True)
class IterationReport:
    """One line of `training.jsonl`.

    Attributes:
        phase: `pretrain` or `train`.
        iteration: from 1, within the phase.
        reconstruction_error: mean E_rec of a pair, both sides added.
        semantic_error: mean semantic error of a pair, both directions added; None while pre-training.
        joint_error: alpha * reconstruction + (1 - alpha) * semantic + the L2 terms.
    """

    phase: str
    iteration: int
    reconstruction_error: float
    semantic_error: float | None
    joint_error: float


@dataclass
class _Side:
    """One language: its phrases, its module, its optimiser."""

    phrases: Phrases
    rare: npt.NDArray[np.bool_]
    module: RecursiveAutoencoder
    optimizer: torch.optim.Optimizer


def _parts(phrases: Phrases, batches: list[Int64Array]) -> Iterator[tuple[Int64Array, Phrases]]:
    """Every batch and its phrases.  They are put in order once, so that a batch is a view."""
    ordered = phrases.select(np.concatenate(batches))
    first = 0
    for batch in batches:
        yield batch, ordered.part(first, first + len(batch))
        first += len(batch)


class Trainer:
    """Trains two recursive auto-encoders on phrase pairs.

    Args:
        pairs: what to learn from.
        settings: how.
        source, target: initial parameters.
        device: where.

    Attributes:
        iteration: iterations done in the current phase.
        phase: `pretrain` or `train`.
        rng: all randomness comes from here.
        finished: the joint error has reached a local minimum, or all iterations are done.
    """

    def __init__(
        self,
        pairs: PhrasePairs,
        settings: TrainingSettings,
        source: RaeParameters,
        target: RaeParameters,
        device: torch.device | None = None,
    ) -> None:
        self.settings = settings
        self.device = device or torch.device("cpu")
        self.rng = np.random.default_rng(settings.seed)
        self.pairs = pairs
        self._sides = (
            self._side(pairs.sources, pairs.source_vocabulary.counts, source),
            self._side(pairs.targets, pairs.target_vocabulary.counts, target),
        )
        self._pool = ThreadPoolExecutor(2) if self.device.type == "cpu" else None
        self.phase = "pretrain" if settings.pretrain_iterations else "train"
        self.iteration = 0
        self.finished = settings.iterations == 0 and not settings.pretrain_iterations
        self._last_error = np.inf
        self._best: list[dict[str, Tensor]] | None = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Call, on one thread, what the two threads will call, and forget the result.

        MKL settles on its kernels at the first call.  Two threads that race there can get different ones, and other
        last bits, in their first batch: seen once in some twenty runs whose libraries were not in memory yet.
        """
        size = min(self.settings.batch_size, len(self.pairs))
        for side in self._sides:
            vectors, errors = side.module(side.phrases.part(0, size))
            transformed = side.module.transformed(vectors)
            (cosines(transformed, vectors).mean() + errors.mean()).backward()
            side.optimizer.zero_grad()

    def _side(self, phrases: Phrases, counts: Int64Array, parameters: RaeParameters) -> _Side:
        module = RecursiveAutoencoder(parameters).to(self.device)
        return _Side(phrases, (counts <= 1)[phrases.words], module, self._optimizer(module))

    def _optimizer(self, module: RecursiveAutoencoder) -> torch.optim.Optimizer:
        s = self.settings
        groups: list[dict[str, Any]] = [
            {"params": [module.word_vectors], "weight_decay": s.lambda_words},
            {
                "params": [module.compose, module.compose_bias, module.reconstruct, module.reconstruct_bias],
                "weight_decay": s.lambda_rec,
            },
            {"params": [module.transform, module.transform_bias], "weight_decay": s.lambda_sem},
        ]
        if s.optimizer == "sgd":
            return torch.optim.SGD(groups, lr=s.learning_rate)
        return torch.optim.Adam(groups, lr=s.learning_rate, betas=(0.9, 0.99), fused=True)

    # The state that a checkpoint keeps.

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor needed to go on: parameters and optimiser state, on CPU."""
        found: dict[str, Tensor] = {}
        for name, side in zip(("source", "target"), self._sides, strict=True):
            for key, value in side.module.named_parameters():
                found[f"{name}.{key}"] = value.detach()
            for index, state in side.optimizer.state_dict()["state"].items():
                for key, entry in state.items():
                    if entry is not None:
                        found[f"{name}.optimizer.{index}.{key}"] = torch.as_tensor(entry)
            if self._best is not None:
                for key, kept in self._best[name == "target"].items():
                    found[f"{name}.best.{key}"] = kept
        return {name: value.cpu().contiguous() for name, value in found.items()}

    def progress(self) -> dict[str, Any]:
        """Everything else needed to go on, as JSON values."""
        return {
            "phase": self.phase,
            "iteration": self.iteration,
            "finished": self.finished,
            "last_error": None if np.isinf(self._last_error) else self._last_error,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Go on where `tensors` and `progress` were taken.

        Raises:
            KeyError, RuntimeError: they are of other settings or pairs.
        """
        best: list[dict[str, Tensor]] = []
        for name, side in zip(("source", "target"), self._sides, strict=True):
            with torch.no_grad():
                for key, value in side.module.named_parameters():
                    value.copy_(tensors[f"{name}.{key}"])
            prefix = f"{name}.optimizer."
            states: dict[int, dict[str, Tensor]] = {}
            for key, tensor in tensors.items():
                if key.startswith(prefix):
                    index, entry = key[len(prefix) :].split(".", 1)
                    states.setdefault(int(index), {})[entry] = tensor
            side.optimizer.load_state_dict({**side.optimizer.state_dict(), "state": states})
            prefix = f"{name}.best."
            best.append(
                {
                    key[len(prefix) :]: tensor.to(self.device)
                    for key, tensor in tensors.items()
                    if key.startswith(prefix)
                }
            )
        self._best = best if best[0] else None
        self.phase = progress["phase"]
        self.iteration = progress["iteration"]
        self.finished = progress["finished"]
        self._last_error = np.inf if progress["last_error"] is None else progress["last_error"]
        self.rng.bit_generator.state = progress["rng"]

    def parameters(self) -> tuple[RaeParameters, RaeParameters]:
        """The current parameters, source first."""
        source, target = (side.module.numpy() for side in self._sides)
        return source, target

    # Iterations.

    def run(self, tick: Callable[[int], None] = lambda pairs: None) -> Iterator[IterationReport]:
        """Train until finished; yields after every iteration.

        Args:
            tick: called with the number of pairs just seen.
        """
        s = self.settings
        while not self.finished:
            self.iteration += 1
            if self.phase == "pretrain":
                report = self._pretrain(tick)
                if self.iteration == s.pretrain_iterations:
                    self.phase, self.iteration = "train", 0
                    self.finished = s.iterations == 0
                yield report
                continue
            self._set_learning_rate()
            report = self._co_train(tick) if s.loss == "max-margin" else self._train_jointly(tick)
            self._judge(report.joint_error)
            yield report

    def _set_learning_rate(self) -> None:
        s = self.settings
        share = 1.0 if s.schedule == "constant" else 1.0 - (self.iteration - 1) / s.iterations
        for side in self._sides:
            for group in side.optimizer.param_groups:
                group["lr"] = s.learning_rate * share

    def _judge(self, error: float) -> None:
        """Stop after the last iteration, or at a local minimum with the parameters that reached it.

        With a falling step size a rise is noise of the early, large steps, so there all iterations are done.
        """
        self.finished = self.iteration >= self.settings.iterations
        if self.settings.schedule != "constant":
            return
        if error > self._last_error and self._best is not None:
            for side, best in zip(self._sides, self._best, strict=True):
                with torch.no_grad():
                    for name, value in side.module.named_parameters():
                        value.copy_(best[name])
            self.finished = True
            return
        self._last_error = error
        self._best = [
            {name: value.detach().clone() for name, value in side.module.named_parameters()} for side in self._sides
        ]

    def _both(self, work: Callable[[int], First]) -> tuple[First, First]:
        """work(0) and work(1), side by side on CPU."""
        if self._pool is None:
            return work(0), work(1)
        second = self._pool.submit(work, 1)
        first = work(0)
        return first, second.result()

    def _batches(self) -> list[Int64Array]:
        order = self.rng.permutation(len(self.pairs))
        size = self.settings.batch_size
        return [order[i : i + size] for i in range(0, len(order), size)]

    def _with_unknowns(self, side: _Side) -> Phrases:
        """The side's phrases with some of the words seen only once read as unknown."""
        words = side.phrases.words
        if self.settings.unknown_rate and side.rare.any():
            drop = side.rare & (self.rng.random(len(words)) < self.settings.unknown_rate)
            words = np.where(drop, np.int32(UNKNOWN), words)
        return Phrases(side.phrases.offsets, words)

    def _penalty(self) -> float:
        """The L2 terms of the joint error (Eq. 11)."""
        total = 0.0
        with torch.no_grad():
            for side in self._sides:
                for group in side.optimizer.param_groups:
                    if group["weight_decay"]:
                        squares = sum(float(p.square().sum()) for p in group["params"])
                        total += group["weight_decay"] / 2 * squares
        return total

    def _report(self, reconstruction: float, semantic: float | None) -> IterationReport:
        alpha = self.settings.alpha if semantic is not None else 1.0
        joint = alpha * reconstruction + (1 - alpha) * (semantic or 0.0) + self._penalty()
        return IterationReport(self.phase, self.iteration, reconstruction, semantic, joint)

    def _pretrain(self, tick: Callable[[int], None]) -> IterationReport:
        """Unsupervised: each RAE minimises its reconstruction error (Eq. 5)."""
        batches = self._batches()

        def work(which: int) -> float:
            side = self._sides[which]
            total = 0.0
            for batch, phrases in _parts(side.phrases, batches):
                _, errors = side.module(phrases)
                side.optimizer.zero_grad()
                errors.mean().backward()
                side.module.transform.grad = None
                side.module.transform_bias.grad = None
                side.optimizer.step()
                total += float(errors.detach().sum())
                if which == 0:
                    tick(len(batch))
            return total / len(self.pairs)

        return self._report(sum(self._both(work)), None)

    def _encode(self, which: int, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Vectors (N, n) and reconstruction errors (N,) under the current parameters, without gradients."""
        numbers, firsts = number_distinct(phrases)
        distinct = phrases.select(firsts)
        vectors, errors = [], []
        with torch.no_grad():
            for start in range(0, len(distinct), _ENCODE_AT_ONCE):
                part = distinct.select(np.arange(start, min(start + _ENCODE_AT_ONCE, len(distinct))))
                v, e = self._sides[which].module(part)
                vectors.append(v)
                errors.append(e)
        index = torch.from_numpy(numbers).to(self.device)
        return torch.cat(vectors)[index], torch.cat(errors)[index]

    def _co_train(self, tick: Callable[[int], None]) -> IterationReport:
        """One iteration of step (2)."""
        s = self.settings
        vocabularies = (len(self.pairs.source_vocabulary), len(self.pairs.target_vocabulary))
        bad = [replace_words(side.phrases, vocabularies[which], self.rng) for which, side in enumerate(self._sides)]
        inputs = [self._with_unknowns(side) for side in self._sides]
        batches = self._batches()
        frozen = self._both(
            lambda which: (self._encode(which, self._sides[which].phrases)[0], self._encode(which, bad[which])[0])
        )

        def update(which: int) -> None:
            side = self._sides[which]
            positive, negative = frozen[1 - which]
            for batch, phrases in _parts(inputs[which], batches):
                index = torch.from_numpy(batch).to(self.device)
                vectors, errors = side.module(phrases)
                transformed = side.module.transformed(vectors)
                semantic = max_semantic_margin(transformed, positive[index], negative[index], s.margin)
                side.optimizer.zero_grad()
                (s.alpha * errors + (1 - s.alpha) * semantic).mean().backward()
                side.optimizer.step()
                if which == 0:
                    tick(len(batch))

        self._both(update)

        def encode(which: int) -> tuple[Tensor, Tensor, Tensor]:
            vectors, errors = self._encode(which, self._sides[which].phrases)
            return vectors, errors, self._encode(which, bad[which])[0]

        now = self._both(encode)
        with torch.no_grad():
            semantic_error = sum(
                float(
                    max_semantic_margin(
                        self._sides[which].module.transformed(now[which][0]), now[1 - which][0], now[1 - which][2],
                        s.margin,
                    ).mean()
                )
                for which in (0, 1)
            )  # fmt: skip
        return self._report(float(now[0][1].mean() + now[1][1].mean()), semantic_error)

    def _train_jointly(self, tick: Callable[[int], None]) -> IterationReport:
        """One epoch of the in-batch objective; the errors are means over the epoch."""
        inputs = [self._with_unknowns(side) for side in self._sides]
        reconstruction = semantic = 0.0
        batches = self._batches()
        for (batch, sources), (_, targets) in zip(*(_parts(i, batches) for i in inputs), strict=True):
            r, e = self._joint_step((sources, targets))
            reconstruction += r
            semantic += e
            tick(len(batch))
        return self._report(reconstruction / len(self.pairs), semantic / len(self.pairs))

    def _joint_step(self, batch: tuple[Phrases, Phrases]) -> tuple[float, float]:
        """Update both sides on one batch; the sums of E_rec and of the cross-entropies over it.

        The graph is cut at the phrase vectors, so that encoding, the two directions of the objective, and the way back
        through the trees each run for both languages at the same time.
        """
        s = self.settings
        sides = self._sides
        encoded = self._both(lambda which: sides[which].module(batch[which]))

        def objective(which: int) -> tuple[float, Tensor, Tensor]:
            own = encoded[which][0].detach().requires_grad_()
            other = encoded[1 - which][0].detach().requires_grad_()
            sides[which].optimizer.zero_grad()
            similarities = cosines(sides[which].module.transformed(own), other)
            losses = in_batch_cross_entropy(similarities, s.temperature, s.smoothing)
            ((1 - s.alpha) * losses.mean()).backward()  # type: ignore[no-untyped-call]
            assert own.grad is not None
            assert other.grad is not None
            return float(losses.detach().sum()), own.grad, other.grad

        results = self._both(objective)

        def back(which: int) -> None:
            vectors, errors = encoded[which]
            gradient = results[which][1] + results[1 - which][2]
            torch.autograd.backward([vectors, errors], [gradient, torch.full_like(errors, s.alpha / len(errors))])
            sides[which].optimizer.step()

        self._both(back)
        rec = float(encoded[0][1].detach().sum() + encoded[1][1].detach().sum())
        return rec, results[0][0] + results[1][0]
