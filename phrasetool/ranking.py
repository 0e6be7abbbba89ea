"""Area under the ROC curve (AUC): how well scores separate true pairs from others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int64Array

# An AUC below this is hardly better than chance.
CHANCE = 0.55
# Other targets that each target is compared with.
_OTHERS = 8


def pairwise_auc(
    own: FloatArray, targets: Int64Array, with_others: Callable[[Int64Array], FloatArray], seed: int
) -> float | None:
    """Return the probability that a pair scores higher than its source with a random other target; ties count one half.

    Args:
        own: similarities of N pairs, shape (N,).
        targets: numbers of their targets, equal ones with one number; int64, shape (N,).
        with_others: similarities of the N sources with other targets, given by their numbers, shape (N,).
        seed: of the other targets, which are drawn from those of the pairs.

    Returns:
        From 0 to 1; None if no other target was drawn.
    """
    rng = np.random.default_rng(seed)
    above, compared = 0.0, 0
    for _ in range(_OTHERS):
        other = targets[rng.integers(0, len(own), len(own))]
        differ = other != targets
        drawn = with_others(other)
        above += float((own[differ] > drawn[differ]).sum() + (own[differ] == drawn[differ]).sum() / 2)
        compared += int(differ.sum())
    return above / compared if compared else None


def area_under_curve(positive: npt.NDArray[np.floating], negative: npt.NDArray[np.floating]) -> float:
    """Return the probability that a positive score is above a negative one; ties count one half.

    Args:
        positive, negative: shapes (P,) and (Q,); 0.5 is returned if one is empty.
    """
    if not len(positive) or not len(negative):
        return 0.5
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left")
    not_above = np.searchsorted(ordered, positive, "right")
    return float((below + not_above).mean() / 2 / len(negative))
