"""The paper's objective: semantic distance with a margin against a corrupted phrase (Zhang et al. 2014, Eq. 9, 12)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from phrasetool.phrases import Phrases


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


def replace_words(phrases: Phrases, vocabulary: int, rng: np.random.Generator) -> Phrases:
    """Bad translations: every word replaced by a random other word of the vocabulary (section 3.3.2).

    The length stays, a replaced word never equals the original, and the unknown word (id 0) is never drawn.

    Args:
        phrases: N phrases.
        vocabulary: its size, at least 3.
        rng: source of randomness.
    """
    if vocabulary < 3:
        raise ValueError(f"a vocabulary of {vocabulary} words has no other word to draw")
    # Draw among the words without 0 and without the original: skip over the original where it is in the range.
    known = phrases.words > 0
    drawn = 1 + (rng.random(len(phrases.words)) * (vocabulary - 1 - known)).astype(np.int32)
    drawn += known & (drawn >= phrases.words)
    return Phrases(phrases.offsets, drawn.astype(np.int32))
