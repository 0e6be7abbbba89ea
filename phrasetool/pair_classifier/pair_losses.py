"""What a classifier learns from a batch: which pairs are translations, and that their vectors are near."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def parallel_loss(logits: Tensor, parallel: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over K pairs: -log p of parallel ones, -log(1 - p) of others.

    Equation 8 of Mao et al. (2021) is misprinted; this is what it must mean.

    Args:
        logits: shape (K,).
        parallel: 1 or 0, shape (K,).
    """
    return functional.binary_cross_entropy_with_logits(logits, parallel)


def contrast_loss(sources: Tensor, targets: Tensor, translations: Tensor, temperature: float) -> Tensor:
    """In-batch cross-entropy of cosines, the mean of both directions.

    A source is to be nearer to its target than to the others of the batch, and a target to its source.  The classifier
    is no metric; with this loss sentence vectors are, so that the nearest can be searched for.

    Args:
        sources, targets: vectors of B pairs, shape (B, n).
        translations: which targets are translations of which sources, bool, shape (B, B), the diagonal among them;
            those beside the diagonal are left out.
        temperature: cosines are divided by it.
    """
    cosines = functional.normalize(sources, dim=1) @ functional.normalize(targets, dim=1).T
    rows = torch.arange(len(sources), device=sources.device)
    others = translations & (rows[:, None] != rows[None])
    scores = (cosines / temperature).masked_fill(others, float("-inf"))
    return (functional.cross_entropy(scores, rows) + functional.cross_entropy(scores.T, rows)) / 2
