"""Stochastic gradient descent per phrase pair, as the BRAE paper describes it (Eq. 14 and 15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phrasetool.phrases import Int64Array, Phrases


def pairs_per_word(phrases: Phrases) -> tuple[Int64Array, Int64Array]:
    """Count the phrases that each word occurs in.

    Returns:
        The distinct words in ascending order, int64, shape (R,), and the number of phrases that contain each one.
    """
    words = phrases.words.astype(np.int64)
    if not len(words):
        return words, words
    # One key for each word of a phrase, so that a word that a phrase repeats counts once.
    keys = np.repeat(np.arange(len(phrases)), phrases.lengths) * (words.max() + 1) + words
    return np.unique(np.unique(keys) % (words.max() + 1), return_counts=True)


class PerPairSgd(torch.optim.Optimizer):
    """Plain SGD whose step is the sum of the steps of a batch's pairs.

    Gradients are those of the *mean* loss of a batch; a step multiplies them by the number of pairs.  Each pair also
    contributes the L2 term of its own parameters (Eq. 15): all matrices and biases, and the vectors of the distinct
    words of its phrase.  Other word vectors stay as they are.

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
