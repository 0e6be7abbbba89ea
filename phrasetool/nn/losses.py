"""Loss functions of networks: contrastive losses over a batch, and the von Mises-Fisher normaliser.

**The logarithm of the normaliser of a von Mises-Fisher distribution**, for any dimension and concentration:

    log C_d(k) = v log k - d/2 log(2 pi) - log I_v(k),     v = d/2 - 1

I_v(k) overflows for large k and underflows for large v, so its logarithm is taken from the uniform expansion for large
orders (DLMF 10.41.3; Abramowitz and Stegun 9.7.7).  With s = sqrt(1 + (k/v)^2) and t = 1/s,

    log(k^-v I_v(k)) ~ v (s - log v - log(1 + s)) - 1/2 log(2 pi v) - 1/2 log s + D_1(t)/v + D_2(t)/v^2 + ..

where D_1, D_2, .. are the cumulants of the expansion's U_1, U_2, ..: their sum is the logarithm of 1 + U_1/v + U_2/v^2
+ ..  In this form nothing is singular at k = 0.  For orders below `_LEAST_ORDER`, the expansion is evaluated
at an order above it, followed by the recurrence I_{v-1} = I_{v+1} + (2v/k) I_v, which is stable in this direction (DLMF
10.29.1).

The derivative is -I_{v+1}(k) / I_v(k), computed from that of the expansion by the same recurrence.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import normalize

# Keeps the gradient at a zero vector finite.
_EPSILON = 1e-6
# Rows per block: their probabilities stay in the cache between the softmax and the two products that use them.
_ROWS = 256


def cosines(transformed: Tensor, other: Tensor) -> Tensor:
    """Return the cosine of every phrase of one side, in the other side's space, with every phrase of the other side.

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
    """Return the cross-entropy of choosing the partner within the batch, in both directions; row i belongs to column i.

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


def contrastive_loss(sources: Tensor, targets: Tensor, translations: Tensor, temperature: float) -> Tensor:
    """Return the in-batch cross-entropy of cosines, the mean of both directions.

    It draws a source nearer to its target than to the other targets of the batch, and a target nearer to its source.
    The classifier is not a metric; with this loss, cosines of sentence vectors can be used to search for the nearest
    sentences.

    Args:
        sources, targets: vectors of B pairs, shape (B, n).
        translations: which targets are translations of which sources, bool, shape (B, B), including the diagonal;
            those off the diagonal are excluded from the candidates.
        temperature: divisor of the cosines.
    """
    cosines = functional.normalize(sources, dim=1) @ functional.normalize(targets, dim=1).T
    rows = torch.arange(len(sources), device=sources.device)
    others = translations & (rows[:, None] != rows[None])
    scores = (cosines / temperature).masked_fill(others, float("-inf"))
    return (functional.cross_entropy(scores, rows) + functional.cross_entropy(scores.T, rows)) / 2


class _CrossEntropy(torch.autograd.Function):
    """Cross-entropy with an explicit gradient, which takes a third of the passes over the matrix."""

    @staticmethod
    def forward(
        context: Any,
        similarities: Tensor,
        temperature: float,
        smoothing: float,
        row_log_shares: Tensor,
        column_log_shares: Tensor,
    ) -> Tensor:
        # Similarities are at most 1, so this shift keeps every exponential in range, for both directions.
        exponentials = (similarities - 1).div_(temperature).exp_()
        # exp(s / temperature - log q) of a candidate: columns are the candidates of a row, and vice versa.
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
    def backward(context: Any, gradient: Tensor) -> Any:
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


# From this order on, the error of four terms is less than 1e-8.
_LEAST_ORDER = 24
# D_1 .. D_4 as {exponent of t: coefficient}.
_CUMULANTS = (
    {1: 1 / 8, 3: -5 / 24},
    {2: 1 / 16, 4: -3 / 8, 6: 5 / 16},
    {3: 25 / 384, 5: -531 / 640, 7: 221 / 128, 9: -1105 / 1152},
    {4: 13 / 128, 6: -71 / 32, 8: 531 / 64, 10: -339 / 32, 12: 565 / 128},
)


def log_vmf_normaliser(kappa: Tensor, dimension: int) -> Tensor:
    """Return log C_d(k), with the gradient -I_{d/2}(k) / I_{d/2-1}(k).

    It is computed in double precision, where the error of value and gradient is less than 1e-8 (relative, or absolute
    where they are less than 1).

    Args:
        kappa: concentrations k, 0 or more, any shape and floating-point type.
        dimension: d, of the space that contains the unit sphere.

    Returns:
        Tensor of the shape and type of `kappa`.

    Raises:
        ValueError: the dimension is less than 1.
    """
    if dimension < 1:
        raise ValueError(f"dimension is {dimension}, expected at least 1")
    return cast(Tensor, _LogNormaliser.apply(kappa, dimension))  # type: ignore[no-untyped-call]


class _LogNormaliser(torch.autograd.Function):
    """Logarithm of the normaliser with an explicit gradient, which comes almost for free with the value."""

    @staticmethod
    def forward(context: Any, kappa: Tensor, dimension: int) -> Tensor:
        k = kappa.detach().double()
        order = dimension / 2 - 1
        steps = max(0, math.ceil(_LEAST_ORDER - order))
        log_scaled, quotient = _expansion(k, order + steps)
        squared = k.square()
        # With G_v = k^-v I_v the recurrence is G_{v-1} = 2v G_v + k^2 G_{v+1}; the quotient is G_{v+1} / G_v.
        for step in range(steps):
            factor = squared * quotient + 2 * (order + steps - step)
            log_scaled = log_scaled + factor.log()
            quotient = factor.reciprocal()
        context.save_for_backward((k * quotient).to(kappa.dtype))
        return (-dimension / 2 * math.log(2 * math.pi) - log_scaled).to(kappa.dtype)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        (ratio,) = context.saved_tensors
        return -gradient * ratio, None


def _expansion(k: Tensor, v: float) -> tuple[Tensor, Tensor]:
    """Return log(k^-v I_v(k)) and I_{v+1}(k) / (k I_v(k)) for a large order v."""
    s = (k / v).square_().add_(1).sqrt_()
    t = s.reciprocal()
    coefficients = _coefficients(v)
    powers = t.unsqueeze(-1).expand(*t.shape, len(coefficients)).cumprod(-1)
    series, slope = (powers @ coefficients.to(k.device)).unbind(-1)
    log_scaled = v * (s - (1 + s).log() - math.log(v)) - 0.5 * s.log() + series - 0.5 * math.log(2 * math.pi * v)
    # d/dk of the line above, over k; ds/dk = k t / v^2 and slope = t d(series)/dt.
    quotient = (1 + s).reciprocal() / v - (t / v).square() * (slope + 0.5)
    return log_scaled, quotient


@cache
def _coefficients(v: float) -> Tensor:
    """Return coefficients of t^1, t^2, .. in the sum of D_i(t) / v^i, and in t times its derivative; shape (12, 2)."""
    table = torch.zeros(12, 2, dtype=torch.float64)
    for i, terms in enumerate(_CUMULANTS, 1):
        for exponent, coefficient in terms.items():
            table[exponent - 1] += torch.tensor([coefficient, exponent * coefficient], dtype=torch.float64) / v**i
    return table


class _SoftmaxCrossEntropy(torch.autograd.Function):
    """Softmax cross-entropy that computes the gradient together with the value, so that no probabilities are kept."""

    @staticmethod
    def forward(
        context: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, precision: torch.dtype
    ) -> Tensor:
        total = hidden.new_zeros(())
        to_hidden, to_weight, to_bias = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        matrix = weight.to(precision)
        for first in range(0, len(hidden), _ROWS):
            rows, expected = hidden[first : first + _ROWS].to(precision), targets[first : first + _ROWS, None]
            scores = (rows @ matrix.T).to(hidden.dtype).add_(bias)
            highest = scores.amax(1, keepdim=True)
            right = scores.gather(1, expected) - highest
            errors = scores.sub_(highest).exp_()
            sums = errors.sum(1, keepdim=True)
            total += (sums.log() - right).sum()
            errors.div_(sums).scatter_add_(1, expected, errors.new_full(expected.shape, -1))
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
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_hidden, to_weight, to_bias = context.saved_tensors
        return to_hidden * gradient, to_weight * gradient, to_bias * gradient, None, None


def softmax_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, precision: str = "float32"
) -> Tensor:
    """Return the sum of the cross-entropies -log softmax(weight h_t + bias)[target_t] (Eq. 22-23), a scalar.

    In float32, it equals torch's `cross_entropy(linear(hidden, weight, bias), targets, reduction="sum")` up to
    rounding, with less memory and time.  In bfloat16, the three matrix products are computed in that precision; the
    softmax and all sums are not.

    Args:
        hidden: shape (T, m).
        weight: shape (V, m).
        bias: shape (V,).
        targets: int64, shape (T,).
        precision: `float32` (that of the arguments) or `bfloat16`.
    """
    arguments = (hidden, weight, bias, targets, torch.bfloat16 if precision == "bfloat16" else hidden.dtype)
    return cast(Tensor, _SoftmaxCrossEntropy.apply(*arguments))  # type: ignore[no-untyped-call]
