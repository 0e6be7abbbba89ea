"""Training on phrase pairs: the two languages with their phrases, modules and optimisers, and the iterations.

Co-training (Zhang et al. 2014, section 3.3.3, step 2) updates each language while the other is frozen; two threads
process the two languages.  Joint training updates both languages together, in ordinary epochs, on vectors of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from phrasetool.phrase_encoder.encoder import EncoderModule, EncoderParameters
from phrasetool.phrase_encoder.losses import CoTrainingObjective, FrozenBatch, JointObjective, unit_vectors
from phrasetool.phrase_encoder.rae_sgd_kernels import PartnerVectors
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.sgd import PerPairSgd, RaeSgd, pairs_per_word
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.ranking import replace_words, replace_words_by_frequency
from phrasetool.training.data import PhrasePairs, log_shares
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import UNKNOWN, Vocabulary

_ENCODE_BATCH = 4096
Result = TypeVar("Result")
_MEASURE_BATCH = 4096


@dataclass(frozen=True)
class EncodedPhrases:
    """N phrases encoded with fixed parameters; P of them are distinct.

    Attributes:
        distinct: vectors, shape (P, n).
        errors: reconstruction errors, shape (P,).
        index: int64, shape (N,): phrase i has row `index[i]`.
    """

    distinct: Tensor
    errors: Tensor
    index: Tensor

    def vectors(self, rows: Tensor) -> Tensor:
        """Return the vectors of the phrases `rows`, shape (len(rows), n)."""
        return self.distinct[self.index[rows]]

    def mean_error(self, weights: Tensor) -> Tensor:
        """Return the weighted mean reconstruction error of the N phrases, a scalar.

        Args:
            weights: weights of the pairs, shape (N,), mean 1.
        """
        return (weights * self.errors[self.index]).mean()


class Side:
    """One language: its phrases, module and optimiser.

    Args:
        phrases: N phrases, one of every pair.
        vocabulary: vocabulary of the phrases.
        settings: training settings.
        parameters: initial values.
        device: device that computes.

    Attributes:
        phrases: the same phrases.
        log_shares: float32, shape (N,), see `phrasetool.training.data.log_shares`.
        vocabulary_size: V.
        module: the module to train.
        optimizer: optimiser of the module's parameters except frozen ones.
        compiled: updates by a compiled kernel; None if there is none for the encoder, the loss and the optimizer.
    """

    def __init__(
        self,
        phrases: Phrases,
        vocabulary: Vocabulary,
        settings: TrainingSettings,
        parameters: EncoderParameters,
        device: torch.device,
    ) -> None:
        self.phrases = phrases
        self.log_shares = torch.from_numpy(log_shares(phrases)).to(device)
        self.vocabulary_size = len(vocabulary)
        self.module: EncoderModule = settings.kind.module(parameters).to(device)
        self._settings = settings
        self._device = device
        self._rare = (vocabulary.counts <= 1)[phrases.words]
        self._frozen: EncodedPhrases | None = None
        self.optimizer = self._optimizer()
        self.compiled = RaeSgd.create(self.module, self.optimizer, settings)

    def _optimizer(self) -> torch.optim.Optimizer:
        s = self._settings
        weights = {"words": s.lambda_words, "rec": s.lambda_rec, "sem": s.lambda_sem}
        groups: list[dict[str, Any]] = []
        for name, parameters in self.module.groups().items():
            if s.freeze_encoders and name != "sem":
                for parameter in parameters:
                    parameter.requires_grad_(False)
            elif parameters:
                step = s.learning_rate * (1.0 if name == "words" else s.matrix_steps)
                groups.append({"params": parameters, "weight_decay": weights[name], "lr": step, "initial_lr": step})
        if s.optimizer == "sgd":
            tables = [] if s.freeze_encoders else self.module.groups()["words"]
            return PerPairSgd(groups, tables[0] if tables else None)
        return torch.optim.Adam(groups, betas=(0.9, 0.99), fused=True)

    def begin(self, rng: np.random.Generator) -> None:
        """Prepare the module for the updates of an iteration.

        Args:
            rng: draws the seed of dropout.
        """
        self.module.train(not self._settings.freeze_encoders)
        self.module.seed_dropout(int(rng.integers(2**63)))

    def with_unknowns(self, rng: np.random.Generator) -> Phrases:
        """Return the phrases with some of the words that occur only once read as unknown."""
        words = self.phrases.words
        if self._settings.unknown_rate and not self._settings.freeze_encoders and self._rare.any():
            drop = self._rare & (rng.random(len(words)) < self._settings.unknown_rate)
            words = np.where(drop, np.int32(UNKNOWN), words)
        return Phrases(self.phrases.offsets, words)

    def forward(self, batch: Int64Array, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Return vectors, shape (B, n), and reconstruction errors, shape (B,), for training.

        Args:
            batch: numbers of the phrases.
            phrases: these phrases as the encoder reads them; not used by frozen encoders, whose vectors are cached.
        """
        if isinstance(self.optimizer, PerPairSgd):
            self.optimizer.start_batch(phrases)
        if not self._settings.freeze_encoders:
            return self.module(phrases)
        vectors = self.encode_all().vectors(self.rows(batch))
        return vectors, vectors.new_zeros(len(vectors))

    def measured(self, batch: Int64Array) -> tuple[Tensor, Tensor]:
        """Return the result of `forward` without gradients and without dropout."""
        self.module.train(False)
        with torch.no_grad():
            return self.forward(batch, self.phrases.select(batch))

    def encode_all(self) -> EncodedPhrases:
        """Encode all phrases of this side, see `encode`; frozen encoders do so only once."""
        if not self._settings.freeze_encoders:
            return self.encode(self.phrases)
        if self._frozen is None:
            self._frozen = self.encode(self.phrases)
        return self._frozen

    def encode(self, phrases: Phrases) -> EncodedPhrases:
        """Encode N phrases under the current parameters, without gradients and without dropout."""
        numbers, distinct = distinct_phrases(phrases)
        vectors, errors = [], []
        self.module.train(False)
        with torch.no_grad():
            for start in range(0, len(distinct), _ENCODE_BATCH):
                part = distinct.part(start, min(start + _ENCODE_BATCH, len(distinct)))
                v, e = self.module(part)
                vectors.append(v)
                errors.append(e)
        return EncodedPhrases(torch.cat(vectors), torch.cat(errors), self.rows(numbers))

    def penalties(self) -> Iterator[float]:
        """Yield the L2 terms of the objective under the current parameters, one for each group that has a weight.

        With plain SGD they are means over the pairs: a pair counts the vectors of the distinct words of its phrase.
        """
        with torch.no_grad():
            for group in self.optimizer.param_groups:
                if group["weight_decay"]:
                    squares = sum(self._squared_norm(parameter) for parameter in group["params"])
                    yield group["weight_decay"] / 2 * squares

    def _squared_norm(self, parameter: Tensor) -> float:
        """Return the sum of squares; for word vectors under plain SGD, the mean over the pairs of each pair's sum."""
        if not isinstance(self.optimizer, PerPairSgd) or parameter is not self.optimizer.word_vectors:
            return float(parameter.square().sum())
        words, counts = self._word_counts
        weights = torch.from_numpy(counts).to(parameter.device, torch.float64) / len(self.phrases)
        return float(parameter[self.rows(words)].double().square().sum(1) @ weights)

    @cached_property
    def _word_counts(self) -> tuple[Int64Array, Int64Array]:
        return pairs_per_word(self.phrases)

    def rows(self, batch: Int64Array) -> Tensor:
        """Return numbers of phrases as an index on the device."""
        return torch.from_numpy(batch).to(self._device)


class Sides:
    """Both languages, source first, on CPU each in its own thread.

    Args:
        pairs: the training pairs.
        settings: hyper-parameters of training.
        parameters: initial values of both.
        device: device that computes.

    Attributes:
        weights: weights of the pairs, float32, shape (N,), mean 1.
    """

    def __init__(
        self,
        pairs: PhrasePairs,
        settings: TrainingSettings,
        parameters: tuple[EncoderParameters, EncoderParameters],
        device: torch.device,
    ) -> None:
        self._sides = (
            Side(pairs.sources, pairs.source_vocabulary, settings, parameters[0], device),
            Side(pairs.targets, pairs.target_vocabulary, settings, parameters[1], device),
        )
        self.weights = torch.from_numpy(pairs.weights(settings.count_exponent)).to(device)
        self._batch_size = settings.batch_size
        self._threads = ThreadPoolExecutor(2) if device.type == "cpu" else None

    def __getitem__(self, which: int) -> Side:
        return self._sides[which]

    def __iter__(self) -> Iterator[Side]:
        return iter(self._sides)

    def __len__(self) -> int:
        return 2

    def both(self, work: Callable[[int], Result]) -> tuple[Result, Result]:
        """Return work(0) and work(1), computed in parallel on CPU."""
        if self._threads is None:
            return work(0), work(1)
        second = self._threads.submit(work, 1)
        first = work(0)
        return first, second.result()

    def batches(self, rng: np.random.Generator) -> list[Int64Array]:
        """Return the numbers of all pairs, shuffled and split into batches."""
        order = rng.permutation(len(self._sides[0].phrases))
        return [order[i : i + self._batch_size] for i in range(0, len(order), self._batch_size)]


def parts(phrases: Phrases, batches: list[Int64Array]) -> Iterator[tuple[Int64Array, Phrases]]:
    """Yield every batch and its phrases, which are put in order once, so that a batch is a view."""
    ordered = phrases.select(np.concatenate(batches))
    first = 0
    for batch in batches:
        yield batch, ordered.part(first, first + len(batch))
        first += len(batch)


@dataclass(frozen=True)
class _Frozen:
    """The other language: all its phrases, the same with random words if needed, and the pool of unit vectors."""

    true: EncodedPhrases
    corrupted: EncodedPhrases | None
    pool: Tensor

    def batch(self, rows: Tensor, rng: np.random.Generator) -> FrozenBatch:
        """Return the arguments of an objective for some pairs."""
        corrupted = self.corrupted.vectors(rows) if self.corrupted else None
        return FrozenBatch(self.true.vectors(rows), corrupted, self.pool, rng)

    def partners(self, order: Int64Array) -> PartnerVectors:
        """Return the vectors of all pairs for the compiled updates, in the given order."""
        assert self.corrupted is not None
        (true, true_rows), (corrupted, corrupted_rows) = (
            (phrases.distinct.cpu().numpy(), phrases.index.cpu().numpy()[order])
            for phrases in (self.true, self.corrupted)
        )
        return PartnerVectors(true, true_rows, corrupted, corrupted_rows)


class CoTraining:
    """Iterations with an objective that treats the other language's vectors as constants.

    Args:
        sides: both languages.
        settings: training settings.
        objective: objective to minimise.
    """

    def __init__(self, sides: Sides, settings: TrainingSettings, objective: CoTrainingObjective) -> None:
        self._sides = sides
        self._alpha = settings.alpha
        self._objective = objective
        # Both languages encoded with the current parameters, if an iteration has been done.
        self._encoded: tuple[EncodedPhrases, EncodedPhrases] | None = None

    def _loss(self, vectors: Tensor, errors: Tensor, which: int, batch: Int64Array, frozen: FrozenBatch) -> Tensor:
        semantic = self._objective.frozen_losses(self._sides[which].module.transformed(vectors), frozen)
        weights = self._sides.weights[self._sides[which].rows(batch)]
        return (weights * (self._alpha * errors + (1 - self._alpha) * semantic)).mean()

    def warm_up(self, batch: Int64Array) -> None:
        """Compute the gradients of a batch, for both languages in turn, and discard them."""
        for which, side in enumerate(self._sides):
            vectors, errors = side.forward(batch, side.phrases.select(batch))
            other = vectors.detach()
            corrupted = other if self._objective.needs_corrupted else None
            frozen = FrozenBatch(other, corrupted, unit_vectors(other), np.random.default_rng(0))
            self._loss(vectors, errors, which, batch, frozen).backward()  # type: ignore[no-untyped-call]
            side.optimizer.zero_grad()

    def errors(self, batch: Int64Array) -> tuple[float, float]:
        """Return mean E_rec and semantic error of a batch under the current parameters, both sides added.

        If the objective needs corrupted phrases, phrases of other pairs are used.
        """
        encoded = [side.measured(batch) for side in self._sides]
        weights = self._sides.weights[self._sides[0].rows(batch)]
        losses = 0.0
        with torch.no_grad():
            for which, side in enumerate(self._sides):
                other = encoded[1 - which][0]
                corrupted = other.roll(1, 0) if self._objective.needs_corrupted else None
                frozen = FrozenBatch(other, corrupted, unit_vectors(other), np.random.default_rng(0))
                predicted = side.module.transformed(encoded[which][0])
                losses += float((weights * self._objective.frozen_losses(predicted, frozen)).mean())
        return sum(float((weights * errors).mean()) for _, errors in encoded), losses

    def iteration(
        self, rng: np.random.Generator, side_rngs: tuple[np.random.Generator, ...], tick: Callable[[int], None]
    ) -> tuple[float, float]:
        """Update both languages on all pairs.

        Args:
            rng: draws random words and the batches.
            side_rngs: random generators of the draws of one language each.
            tick: called with the number of pairs just processed.

        Returns:
            E_rec and semantic error of the whole corpus afterwards, weighted means over the pairs, both sides added.
        """
        sides = self._sides
        bad = None
        if self._objective.needs_corrupted:
            replace = replace_words_by_frequency if self._objective.corrupts_by_frequency else replace_words
            bad = [replace(side.phrases, side.vocabulary_size, rng) for side in sides]
        inputs = [side.with_unknowns(rng) for side in sides]
        batches = sides.batches(rng)
        frozen = self._freeze(bad)

        def update(which: int) -> None:
            side = sides[which]
            side.begin(side_rngs[which])
            if side.compiled and side.compiled.available:
                order = np.concatenate(batches)
                partners = frozen[1 - which].partners(order)
                side.compiled.run(inputs[which].select(order), partners, tick if which == 0 else lambda pairs: None)
                return
            for batch, phrases in parts(inputs[which], batches):
                vectors, errors = side.forward(batch, phrases)
                other = frozen[1 - which].batch(side.rows(batch), side_rngs[which])
                side.optimizer.zero_grad()
                self._loss(vectors, errors, which, batch, other).backward()  # type: ignore[no-untyped-call]
                side.optimizer.step()
                if which == 0:
                    tick(len(batch))

        sides.both(update)
        self._encoded = None
        frozen = self._freeze(bad)
        semantic = sides.both(lambda which: self._measure(which, frozen, side_rngs[which]))
        weights = sides.weights
        return float(frozen[0].true.mean_error(weights) + frozen[1].true.mean_error(weights)), sum(semantic)

    def _freeze(self, bad: list[Phrases] | None) -> tuple[_Frozen, _Frozen]:
        """Encode both languages with the current parameters."""
        sides = self._sides
        encoded = self._encoded or sides.both(lambda which: sides[which].encode_all())
        self._encoded = encoded

        def freeze(which: int) -> _Frozen:
            corrupted = sides[which].encode(bad[which]) if bad else None
            return _Frozen(encoded[which], corrupted, unit_vectors(encoded[which].distinct))

        return sides.both(freeze)

    def _measure(self, which: int, frozen: tuple[_Frozen, _Frozen], rng: np.random.Generator) -> float:
        """Return the mean semantic error of one direction over all pairs."""
        side = self._sides[which]
        losses = []
        with torch.no_grad():
            for first in range(0, len(side.phrases), _MEASURE_BATCH):
                rows = side.rows(np.arange(first, min(first + _MEASURE_BATCH, len(side.phrases))))
                predicted = side.module.transformed(frozen[which].true.vectors(rows))
                losses.append(self._objective.frozen_losses(predicted, frozen[1 - which].batch(rows, rng)))
        return float((self._sides.weights * torch.cat(losses)).mean())


class JointTraining:
    """Iterations with an objective that sends gradients into both languages.

    Args:
        sides: both languages.
        settings: training settings.
        objective: objective to minimise.
    """

    def __init__(self, sides: Sides, settings: TrainingSettings, objective: JointObjective) -> None:
        self._sides = sides
        self._alpha = settings.alpha
        self._objective = objective

    def warm_up(self, batch: Int64Array) -> None:
        """Compute the gradients of a batch, for both languages in turn, and discard them."""
        for side in self._sides:
            vectors, errors = side.forward(batch, side.phrases.select(batch))
            shares = side.log_shares[side.rows(batch)]
            losses = self._objective.batch_losses(side.module.transformed(vectors), vectors, (shares, shares))
            (losses.mean() + errors.mean()).backward()  # type: ignore[no-untyped-call]
            side.optimizer.zero_grad()

    def errors(self, batch: Int64Array) -> tuple[float, float]:
        """Return mean E_rec and semantic error of a batch under the current parameters, both sides added."""
        encoded = [side.measured(batch) for side in self._sides]
        weights, shares = self._of(batch)
        losses = 0.0
        with torch.no_grad():
            for which, side in enumerate(self._sides):
                predicted = side.module.transformed(encoded[which][0])
                own_and_other = shares[which], shares[1 - which]
                batch_losses = self._objective.batch_losses(predicted, encoded[1 - which][0], own_and_other)
                losses += float((weights * batch_losses).mean())
        return sum(float((weights * errors).mean()) for _, errors in encoded), losses

    def _of(self, batch: Int64Array) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return weights of the pairs of a batch, and log shares of their phrases, source first; shape (B,) each."""
        source, target = self._sides
        rows = source.rows(batch)
        return self._sides.weights[rows], (source.log_shares[rows], target.log_shares[rows])

    def iteration(
        self, rng: np.random.Generator, side_rngs: tuple[np.random.Generator, ...], tick: Callable[[int], None]
    ) -> tuple[float, float]:
        """Update both languages on all pairs.

        Args:
            rng: draws the batches.
            side_rngs: random generators of the draws of one language each.
            tick: called with the number of pairs just processed.

        Returns:
            E_rec and semantic error, means over the pairs before the update of each, both sides added.
        """
        inputs = [side.with_unknowns(rng) for side in self._sides]
        batches = self._sides.batches(rng)
        for side, side_rng in zip(self._sides, side_rngs, strict=True):
            side.begin(side_rng)
        reconstruction = semantic = 0.0
        for (batch, sources), (_, targets) in zip(*(parts(i, batches) for i in inputs), strict=True):
            r, e = self._step(batch, (sources, targets))
            reconstruction += r
            semantic += e
            tick(len(batch))
        pairs = len(self._sides[0].phrases)
        return reconstruction / pairs, semantic / pairs

    def _step(self, batch: Int64Array, phrases: tuple[Phrases, Phrases]) -> tuple[float, float]:
        """Update both sides on one batch; return the sums of E_rec and of the losses over it.

        The graph is cut at the phrase vectors, so that encoding, the two directions of the objective, and the backward
        pass through the encoders each run for both languages at the same time.
        """
        sides = self._sides
        weights, shares = self._of(batch)
        encoded = sides.both(lambda which: sides[which].forward(batch, phrases[which]))

        def objective(which: int) -> tuple[float, Tensor, Tensor]:
            own = encoded[which][0].detach().requires_grad_()
            other = encoded[1 - which][0].detach().requires_grad_()
            sides[which].optimizer.zero_grad()
            predicted = sides[which].module.transformed(own)
            losses = weights * self._objective.batch_losses(predicted, other, (shares[which], shares[1 - which]))
            ((1 - self._alpha) * losses.mean()).backward()  # type: ignore[no-untyped-call]
            assert own.grad is not None
            assert other.grad is not None
            return float(losses.detach().sum()), own.grad, other.grad

        results = sides.both(objective)

        def back(which: int) -> None:
            vectors, errors = encoded[which]
            gradients = (results[which][1] + results[1 - which][2], weights * (self._alpha / len(errors)))
            # Frozen encoders have no gradient, and some encoders have no reconstruction errors.
            roots = [pair for pair in zip((vectors, errors), gradients, strict=True) if pair[0].requires_grad]
            torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])
            sides[which].optimizer.step()

        sides.both(back)
        rec = float((weights * (encoded[0][1].detach() + encoded[1][1].detach())).sum())
        return rec, results[0][0] + results[1][0]
