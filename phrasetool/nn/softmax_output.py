"""Cross-entropy of a softmax over a large vocabulary, computed some rows at a time."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

# Rows at a time: their probabilities stay in the cache between the softmax and the two products that use them.
_ROWS = 256


class _SoftmaxCrossEntropy(torch.autograd.Function):
    """The gradient is worked out with the value, while the probabilities are at hand: they are never kept."""

    @staticmethod
    def forward(  # type: ignore[override]
        context: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, precision: torch.dtype
    ) -> Tensor:
        total = hidden.new_zeros(())
        to_hidden, to_weight, to_bias = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        matrix = weight.to(precision)
        for first in range(0, len(hidden), _ROWS):
            rows, wanted = hidden[first : first + _ROWS].to(precision), targets[first : first + _ROWS, None]
            scores = (rows @ matrix.T).to(hidden.dtype).add_(bias)
            highest = scores.amax(1, keepdim=True)
            right = scores.gather(1, wanted) - highest
            errors = scores.sub_(highest).exp_()
            sums = errors.sum(1, keepdim=True)
            total += (sums.log() - right).sum()
            errors.div_(sums).scatter_add_(1, wanted, errors.new_full(wanted.shape, -1))
            to_bias += errors.sum(0)
            errors = errors.to(precision)
            to_hidden[first : first + _ROWS] = errors @ matrix
            if precision == hidden.dtype:
                to_weight.addmm_(errors.T, rows)
            else:
                to_weight += errors.T @ rows
        context.save_for_backward(to_hidden, to_weight, to_bias)
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        to_hidden, to_weight, to_bias = context.saved_tensors
        return to_hidden * gradient, to_weight * gradient, to_bias * gradient, None, None


def softmax_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, precision: str = "float32"
) -> Tensor:
    """Sum of the cross-entropies -log softmax(weight h_t + bias)[target_t] (Eq. 22-23), a scalar.

    In float32 equal to torch's `cross_entropy(linear(hidden, weight, bias), targets, reduction="sum")`, in less memory
    and time, but for rounding.  In bfloat16 the three matrix products are taken in that precision; the softmax and
    all sums are not.

    Args:
        hidden: shape (T, m).
        weight: shape (V, m).
        bias: shape (V,).
        targets: int64, shape (T,).
        precision: `float32` (that of the arguments) or `bfloat16`.
    """
    arguments = (hidden, weight, bias, targets, torch.bfloat16 if precision == "bfloat16" else hidden.dtype)
    return cast(Tensor, _SoftmaxCrossEntropy.apply(*arguments))  # type: ignore[no-untyped-call]
