"""The two languages in training: phrases, module and optimiser of each, and two threads to work on them."""

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
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.sgd import PerPairSgd, RaeSgd, pairs_per_word
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.training.data import PhrasePairs, log_shares
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import UNKNOWN, Vocabulary

_ENCODE_AT_ONCE = 4096
Result = TypeVar("Result")


@dataclass(frozen=True)
class EncodedPhrases:
    """N phrases under parameters that stay as they are; P of them differ.

    Attributes:
        distinct: vectors, shape (P, n).
        errors: reconstruction errors, shape (P,).
        index: int64, shape (N,): phrase i has row `index[i]`.
    """

    distinct: Tensor
    errors: Tensor
    index: Tensor

    def vectors(self, rows: Tensor) -> Tensor:
        """Vectors of the phrases `rows`, shape (len(rows), n)."""
        return self.distinct[self.index[rows]]

    def mean_error(self, weights: Tensor) -> Tensor:
        """Weighted mean reconstruction error of the N phrases, a scalar.

        Args:
            weights: of the pairs, shape (N,), mean 1.
        """
        return (weights * self.errors[self.index]).mean()


class Side:
    """One language.

    Args:
        phrases: N phrases, one of every pair.
        vocabulary: what they are made of.
        settings: of training.
        parameters: initial values.
        device: where.

    Attributes:
        phrases: the same phrases.
        log_shares: float32, shape (N,), see `phrasetool.training.data.log_shares`.
        vocabulary_size: V.
        module: what is trained.
        optimizer: of the module's parameters, but for frozen ones.
        compiled: updates by a compiled kernel, if there is one for the encoder, the loss and the optimizer.
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
        """Make ready for the updates of an iteration.

        Args:
            rng: decides what dropout drops.
        """
        self.module.train(not self._settings.freeze_encoders)
        self.module.seed_dropout(int(rng.integers(2**63)))

    def with_unknowns(self, rng: np.random.Generator) -> Phrases:
        """The phrases with some of the words seen only once read as unknown."""
        words = self.phrases.words
        if self._settings.unknown_rate and not self._settings.freeze_encoders and self._rare.any():
            drop = self._rare & (rng.random(len(words)) < self._settings.unknown_rate)
            words = np.where(drop, np.int32(UNKNOWN), words)
        return Phrases(self.phrases.offsets, words)

    def forward(self, batch: Int64Array, phrases: Phrases) -> tuple[Tensor, Tensor]:
        """Vectors, shape (B, n), and reconstruction errors, shape (B,), to be trained on.

        Args:
            batch: which phrases.
            phrases: these phrases as they are to be read; frozen encoders, which know them already, do not read.
        """
        if isinstance(self.optimizer, PerPairSgd):
            self.optimizer.start_batch(phrases)
        if not self._settings.freeze_encoders:
            return self.module(phrases)
        vectors = self.encode_all().vectors(self.rows(batch))
        return vectors, vectors.new_zeros(len(vectors))

    def measured(self, batch: Int64Array) -> tuple[Tensor, Tensor]:
        """The same without gradients and without dropout."""
        self.module.train(False)
        with torch.no_grad():
            return self.forward(batch, self.phrases.select(batch))

    def encode_all(self) -> EncodedPhrases:
        """All phrases of this side, as `encode` does; by frozen encoders once and for all."""
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
            for start in range(0, len(distinct), _ENCODE_AT_ONCE):
                part = distinct.part(start, min(start + _ENCODE_AT_ONCE, len(distinct)))
                v, e = self.module(part)
                vectors.append(v)
                errors.append(e)
        return EncodedPhrases(torch.cat(vectors), torch.cat(errors), self.rows(numbers))

    def penalties(self) -> Iterator[float]:
        """L2 terms of the objective under the current parameters, one for each group that has a weight.

        With plain SGD they are means over the pairs: a pair counts the vectors of the distinct words of its phrase.
        """
        with torch.no_grad():
            for group in self.optimizer.param_groups:
                if group["weight_decay"]:
                    squares = sum(self._squared_norm(parameter) for parameter in group["params"])
                    yield group["weight_decay"] / 2 * squares

    def _squared_norm(self, parameter: Tensor) -> float:
        """The sum of squares; of word vectors under plain SGD, the mean over the pairs of what each pair uses."""
        if not isinstance(self.optimizer, PerPairSgd) or parameter is not self.optimizer.word_vectors:
            return float(parameter.square().sum())
        words, counts = self._word_counts
        weights = torch.from_numpy(counts).to(parameter.device, torch.float64) / len(self.phrases)
        return float(parameter[self.rows(words)].double().square().sum(1) @ weights)

    @cached_property
    def _word_counts(self) -> tuple[Int64Array, Int64Array]:
        return pairs_per_word(self.phrases)

    def rows(self, batch: Int64Array) -> Tensor:
        """Numbers of phrases as an index on the device."""
        return torch.from_numpy(batch).to(self._device)


class Sides:
    """Both languages, source first.  On CPU each is worked on by a thread of its own.

    Args:
        pairs: what to learn from.
        settings: how.
        parameters: initial values of both.
        device: where.

    Attributes:
        weights: float32, shape (N,), of the pairs, mean 1.
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
        """work(0) and work(1), side by side on CPU."""
        if self._threads is None:
            return work(0), work(1)
        second = self._threads.submit(work, 1)
        first = work(0)
        return first, second.result()

    def batches(self, rng: np.random.Generator) -> list[Int64Array]:
        """The numbers of all pairs, shuffled and cut into batches."""
        order = rng.permutation(len(self._sides[0].phrases))
        return [order[i : i + self._batch_size] for i in range(0, len(order), self._batch_size)]


def parts(phrases: Phrases, batches: list[Int64Array]) -> Iterator[tuple[Int64Array, Phrases]]:
    """Every batch and its phrases.  They are put in order once, so that a batch is a view."""
    ordered = phrases.select(np.concatenate(batches))
    first = 0
    for batch in batches:
        yield batch, ordered.part(first, first + len(batch))
        first += len(batch)
