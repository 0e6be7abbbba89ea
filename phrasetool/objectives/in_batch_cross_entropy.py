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


def in_batch_cross_entropy(
    similarities: Tensor,
    temperature: float = 0.05,
    smoothing: float = 0.0,
    log_shares: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Cross-entropy of choosing the partner among the batch, from both ends; row i belongs to column i.

    Args:
        similarities: between -1 and 1, shape (B, B).
        temperature: divisor of the similarities.
        smoothing: share of the target distribution spread evenly over the batch (label smoothing, Szegedy et al. 2016).
        log_shares: log q of the phrases of the rows and of the columns, shape (B,) each: log of the share of the
            training pairs that contain the phrase.  They are subtracted from the logits of the candidates (Bengio and
            Senecal 2008; Yi et al. 2019); None for no correction.

    Returns:
        The sum of both cross-entropies for each pair, shape (B,).
    """
    rows, columns = log_shares or (similarities.new_zeros(len(similarities)),) * 2
    return cast(Tensor, _CrossEntropy.apply(similarities, temperature, smoothing, rows, columns))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    """The gradient is written out: it takes a third of the passes over the matrix."""

    @staticmethod
    def forward(  # type: ignore[override]
        context: Any,
        similarities: Tensor,
        temperature: float,
        smoothing: float,
        row_log_shares: Tensor,
        column_log_shares: Tensor,
    ) -> Tensor:
        # Similarities are at most 1, so this shift keeps every exponential in range, and one serves both ends.
        exponentials = (similarities - 1).div_(temperature).exp_()
        # exp(s / temperature - log q) of a candidate: columns are the candidates of a row, and the other way round.
        row_weights, column_weights = (-row_log_shares).exp(), (-column_log_shares).exp()
        rows, columns = exponentials @ column_weights, row_weights @ exponentials
        context.save_for_backward(exponentials, rows, columns, row_weights, column_weights)
        context.temperature, context.smoothing = temperature, smoothing
        expected = 2 * (1 - smoothing) * (similarities.diagonal() - 1)
        corrections = (1 - smoothing) * (row_log_shares + column_log_shares)
        if smoothing:
            expected = expected + smoothing * (similarities.mean(1) + similarities.mean(0) - 2)
            corrections = corrections + smoothing * (row_log_shares.mean() + column_log_shares.mean())
        return rows.log() + columns.log() - expected / temperature + corrections

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        exponentials, rows, columns, row_weights, column_weights = context.saved_tensors
        scaled = gradient / context.temperature
        d = torch.outer(scaled / rows, column_weights)
        d.addr_(row_weights, scaled / columns)
        d *= exponentials
        if context.smoothing:
            even = scaled * (context.smoothing / len(scaled))
            d -= even[:, None]
            d -= even
        d.diagonal().sub_(2 * (1 - context.smoothing) * scaled)
        return d, None, None, None, None
