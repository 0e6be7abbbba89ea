"""The margin loss over cosines (Bhat, Kumar and Tsvetkov 2020, Eq. 1), which four objectives share.

    L = max(0, margin + u'.p - u.p)

with p the predicted, u the true and u' a negative vector, all of length one.  The objectives differ in their u'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# Shorter vectors count as zero: in single precision, the direction of what is left of a difference of two unit vectors
# is rounding noise there; and the gradient of a direction grows as one over the length.
SHORTEST = 1e-6
# The paper does not give its own.  With this one a pair teaches something as long as its cosine is below 1, against a
# negative that is orthogonal to the prediction.  All losses that share it learn less with smaller ones.
MARGIN = 1.0
MARGIN_HELP = "By how much the cosine with the true partner must be above that with the negative."


def checked_margin(margin: float) -> None:
    """Refuse a margin that is negative or no number.

    Raises:
        ValueError: it is.
    """
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin is {margin!r}, expected 0 or more")


def unit_vectors(vectors: Tensor) -> Tensor:
    """The vectors at length one; a zero vector (shorter than `SHORTEST`) is zero, and no gradient comes through it.

    Args:
        vectors: shape (B, n).

    Returns:
        shape (B, n).
    """
    lengths: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors * (lengths.clamp_min(SHORTEST).reciprocal() * (lengths >= SHORTEST))


def margin_loss(predicted: Tensor, positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """max(0, margin + negative.predicted - positive.predicted) (Eq. 1).

    Args:
        predicted, positive, negative: unit (or zero) vectors, shape (B, n).
        margin: lambda.

    Returns:
        shape (B,).
    """
    return (((negative - positive) * predicted).sum(1) + margin).relu()
