"""Contrastive objective: tell the true partner from the other phrases of the batch.

Symmetric cross-entropy over cosines at a temperature, as in CLIP (Radford et al. 2021) and bilingual sentence
encoders (Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence Embeddings").
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

# exp(-2 / temperature), the smallest term there can be, must not vanish in single precision.
LOWEST_TEMPERATURE = 0.03
# Keeps the gradient at a zero vector finite.
_EPSILON = 1e-6


def in_batch_cross_entropy(
    transformed: Tensor,
    other: Tensor,
    excluded: Tensor | None = None,
    temperature: float = 0.1,
    smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy of picking the partner, from both ends; row i belongs to row i.

    Args:
        transformed: phrases of one side in the other side's space, shape (B, n).
        other: phrase vectors of the other side, shape (B, n).
        excluded: bool, shape (B, B), pairs that are no negatives (a second translation of the same phrase).
        temperature: what cosines are divided by.
        smoothing: share of the target distribution spread evenly over the batch (label smoothing, Szegedy et al. 2016).

    Returns:
        The sum of both cross-entropies for each pair, shape (B,).

    Raises:
        ValueError: the temperature is too low for single precision.
    """
    if temperature < LOWEST_TEMPERATURE:
        raise ValueError(f"temperature {temperature} is below {LOWEST_TEMPERATURE}, where exponentials underflow")
    own, others = normalize(transformed, eps=_EPSILON) / temperature, normalize(other, eps=_EPSILON)
    cosines = own @ others.T
    # Cosines are at most 1, so this shift keeps every exponential in range, and one of them serves both directions.
    shift = 1.0 / temperature
    exponentials = torch.exp(cosines - shift)
    if excluded is not None:
        exponentials = exponentials.masked_fill(excluded, 0.0)
    positive = cosines.diagonal() - shift
    losses = exponentials.sum(1).log() + exponentials.sum(0).log() - 2 * (1 - smoothing) * positive
    if smoothing:
        # The mean of a row of cosines is the product with the mean vector: no second pass over the matrix.
        even = own @ others.mean(0) + others @ own.mean(0)
        losses = losses - smoothing * (even - 2 * shift)
    return losses
