"""The cross-entropy over the phrases of a batch, with its gradient; see `in_batch`."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Keeps the gradient at a zero vector finite.
_EPSILON = 1e-6


def cosines(transformed: Tensor, other: Tensor) -> Tensor:
    """Cosine of every phrase of one side, in the other side's space, with every phrase of the other side.

    Args:
        transformed, other: shape (B, n).

    Returns:
        shape (B, B); 0 where a vector is zero.
    """
    return normalize(transformed, eps=_EPSILON) @ normalize(other, eps=_EPSILON).T


def in_batch_cross_entropy(similarities: Tensor, temperature: float = 0.1, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy of picking the partner, from both ends; row i belongs to column i.

    Args:
        similarities: between -1 and 1, shape (B, B).
        temperature: what they are divided by.
        smoothing: share of the wanted distribution spread evenly over the batch (label smoothing, Szegedy et al. 2016).

    Returns:
        The sum of both cross-entropies for each pair, shape (B,).
    """
    return cast(Tensor, _CrossEntropy.apply(similarities, temperature, smoothing))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    """The gradient is written out: it takes a third of the passes over the matrix."""

    @staticmethod
    def forward(context: Any, similarities: Tensor, temperature: float, smoothing: float) -> Tensor:  # type: ignore[override]
        # Similarities are at most 1, so this shift keeps every exponential in range, and one serves both ends.
        exponentials = (similarities - 1).div_(temperature).exp_()
        rows, columns = exponentials.sum(1), exponentials.sum(0)
        context.save_for_backward(exponentials, rows, columns)
        context.temperature, context.smoothing = temperature, smoothing
        wanted = 2 * (1 - smoothing) * similarities.diagonal() - 2  # 2: the shift
        if smoothing:
            wanted = wanted + smoothing * (similarities.mean(1) + similarities.mean(0))
        return rows.log() + columns.log() - wanted / temperature

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        exponentials, rows, columns = context.saved_tensors
        scaled = gradient / context.temperature
        d = torch.add((scaled / rows)[:, None], scaled / columns)
        d *= exponentials
        if context.smoothing:
            even = scaled * (context.smoothing / len(scaled))
            d -= even[:, None]
            d -= even
        d.diagonal().sub_(2 * (1 - context.smoothing) * scaled)
        return d, None, None
