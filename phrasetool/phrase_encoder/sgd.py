"""Stochastic gradient descent per phrase pair, as the BRAE paper describes it (Eq. 14 and 15).

`PerPairSgd` is a torch optimizer; `RaeSgd` makes the same updates of recursive auto-encoders with the max-margin loss
in a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.phrase_encoder.losses import MaxMargin
from phrasetool.phrase_encoder.rae_network import RecursiveAutoencoder
from phrasetool.phrase_encoder.rae_sgd_kernels import PartnerVectors, SgdMatrices, SgdRates, run_sgd
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrases import FloatArray, Int64Array, Phrases


def pairs_per_word(phrases: Phrases) -> tuple[Int64Array, Int64Array]:
    """Count the phrases that each word occurs in.

    Returns:
        The distinct words in ascending order, int64, shape (R,), and the number of phrases that contain each one.
    """
    words = phrases.words.astype(np.int64)
    if not len(words):
        return words, words
    # One key for each word of a phrase, so that a word repeated in a phrase counts once.
    keys = np.repeat(np.arange(len(phrases)), phrases.lengths) * (words.max() + 1) + words
    return np.unique(np.unique(keys) % (words.max() + 1), return_counts=True)


class PerPairSgd(torch.optim.Optimizer):
    """Plain SGD whose step is the sum of the steps of a batch's pairs.

    Gradients are those of the *mean* loss of a batch; a step multiplies them by the number of pairs.  Each pair also
    contributes the L2 term of its own parameters (Eq. 15): all matrices and biases, and the vectors of the distinct
    words of its phrase.  Other word vectors do not change.

    Args:
        groups: parameters with `lr`, the step size of a pair, and `weight_decay`, the L2 weight.
        word_vectors: the parameter, shape (V, n), with one row per word of the vocabulary; None if it is frozen.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], word_vectors: nn.Parameter | None) -> None:
        super().__init__(groups, {})
        self.word_vectors = word_vectors
        self._phrases = Phrases.from_lists([])

    def start_batch(self, phrases: Phrases) -> None:
        """Set the phrases that the next step is for.

        Args:
            phrases: the phrases of the batch as the encoder reads them.
        """
        self._phrases = phrases

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        pairs = len(self._phrases)
        for group in self.param_groups:
            step, weight = group["lr"], group["weight_decay"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                gradient: Tensor = parameter.grad
                if self.word_vectors is None or parameter is not self.word_vectors:
                    parameter.mul_(1 - step * pairs * weight)
                    parameter.add_(gradient, alpha=-step * pairs)
                else:
                    self._update_words(self.word_vectors, gradient, step, weight)

    def _update_words(self, vectors: Tensor, gradient: Tensor, step: float, weight: float) -> None:
        """Update the rows of the batch's words."""
        words, counts = pairs_per_word(self._phrases)
        rows = torch.from_numpy(words).to(vectors.device)
        values = vectors[rows]
        shrunk = 1 - step * weight * torch.from_numpy(counts).to(vectors.device, vectors.dtype)
        update = gradient[rows].mul_(-step * len(self._phrases)).addcmul_(values, shrunk[:, None])
        vectors.index_copy_(0, rows, update)


# Pairs between two reports of progress, rounded to whole batches.
_PAIRS_PER_CALL = 4096


class RaeSgd:
    """Updates of one language, equal to those of `PerPairSgd` up to rounding, but many times faster at small batches.

    The kernel runs on the CPU; parameters on another device are copied there and back once per iteration.

    Args:
        module: the recursive auto-encoder to train.
        optimizer: holds the step sizes and L2 weights of the module's parameters.
        settings: training settings.
        objective: the loss.
    """

    def __init__(
        self, module: RecursiveAutoencoder, optimizer: PerPairSgd, settings: TrainingSettings, objective: MaxMargin
    ) -> None:
        self._module = module
        self._optimizer = optimizer
        self._batch_size = settings.batch_size
        self._alpha = settings.alpha
        self._margin = objective.margin

    @classmethod
    def create(cls, module: object, optimizer: torch.optim.Optimizer, settings: TrainingSettings) -> RaeSgd | None:
        """Return the updates for a module, or None if the kernel does not cover its encoder, loss or optimizer."""
        objective = settings.objective
        if settings.freeze_encoders or settings.count_exponent or not isinstance(optimizer, PerPairSgd):
            return None
        if not isinstance(module, RecursiveAutoencoder) or not isinstance(objective, MaxMargin):
            return None
        return cls(module, optimizer, settings, objective)

    @property
    def available(self) -> bool:
        """Whether the kernel may be used: the module does not force torch."""
        return not self._module.force_torch

    def run(
        self, phrases: Phrases, partners: PartnerVectors | None, tick: Callable[[int], None] = lambda pairs: None
    ) -> float:
        """Update the parameters on all phrases in order.

        Args:
            phrases: the phrases as the encoder reads them.
            partners: vectors of the other language, with a row for each phrase; None to pre-train the encoder alone.
            tick: called with the number of pairs just processed.

        Returns:
            The sum of the reconstruction errors under the parameters of each update.
        """
        module = self._module
        vectors = _on_cpu(module.word_vectors)
        matrices = SgdMatrices(
            *_both_layouts(module.compose), _on_cpu(module.compose_bias),
            *_both_layouts(module.reconstruct), _on_cpu(module.reconstruct_bias),
            *_both_layouts(module.transform), _on_cpu(module.transform_bias),
        )  # fmt: skip
        rates = self._rates(partners is not None)
        size = self._batch_size * max(1, _PAIRS_PER_CALL // self._batch_size)
        total = 0.0
        for first in range(0, len(phrases), size):
            last = min(first + size, len(phrases))
            part = phrases.part(first, last)
            words = np.ascontiguousarray(part.words, np.int32)
            total += run_sgd(
                part.offsets, words, self._batch_size, vectors, matrices, _rows(partners, first, last, vectors), rates
            )[0]
            tick(last - first)
        self._store(vectors, matrices)
        return total

    def _rates(self, semantic: bool) -> SgdRates:
        words, tree, transform = self._optimizer.param_groups
        values = (
            self._alpha if semantic else 1.0, 1 - self._alpha, self._margin,
            words["lr"], tree["lr"], transform["lr"],
            *(group["lr"] * group["weight_decay"] for group in (words, tree, transform)),
        )  # fmt: skip
        return SgdRates(*map(np.float32, values))

    @torch.no_grad()
    def _store(self, vectors: FloatArray, matrices: SgdMatrices) -> None:
        """Copy the parameters back if they are not updated in place."""
        if self._module.word_vectors.device.type == "cpu":
            return
        self._module.word_vectors.copy_(torch.from_numpy(vectors))
        for name, array in matrices._asdict().items():
            if not name.endswith("_turned"):
                getattr(self._module, name).copy_(torch.from_numpy(array))


def _on_cpu(parameter: Tensor) -> FloatArray:
    array: FloatArray = parameter.detach().cpu().numpy()
    return array


def _both_layouts(parameter: Tensor) -> tuple[FloatArray, FloatArray]:
    matrix = _on_cpu(parameter)
    return matrix, np.ascontiguousarray(matrix.T)


def _rows(partners: PartnerVectors | None, first: int, last: int, vectors: FloatArray) -> PartnerVectors:
    """Return the partners of some pairs; empty while an encoder is pre-trained alone."""
    if partners is None:
        no_vectors, no_rows = np.empty((0, vectors.shape[1]), np.float32), np.empty(0, np.int64)
        return PartnerVectors(no_vectors, no_rows, no_vectors, no_rows)
    return PartnerVectors(
        partners.true, partners.true_rows[first:last], partners.corrupted, partners.corrupted_rows[first:last]
    )
