"""The paper's objective: semantic distance with a margin against a corrupted phrase (Zhang et al. 2014, Eq. 9, 12)."""

from __future__ import annotations

import torch
from torch import Tensor


def semantic_error(transformed: Tensor, other: Tensor) -> Tensor:
    """E_sem(s|t) = 1/2 ||p_t - f(Wl_s p_s + bl_s)||^2 (Eq. 9).

    Args:
        transformed: f(Wl p + bl) of one side, shape (B, n).
        other: phrase vectors of the other side, shape (B, n).

    Returns:
        shape (B,).
    """
    return 0.5 * (other - transformed).square().sum(1)


def max_semantic_margin(transformed: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
    """E*_sem(s|t) = max(0, E_sem(s|t) - E_sem(s|t') + margin) (Eq. 12).

    Args:
        transformed, positive, negative: shape (B, n).
        margin: 1 in the paper.

    Returns:
        shape (B,).
    """
    return torch.relu(semantic_error(transformed, positive) - semantic_error(transformed, negative) + margin)
