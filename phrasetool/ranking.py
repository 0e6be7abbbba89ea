"""Whether similarities tell pairs from pairs made at random: the area under the curve, without the curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array

# Below this AUC pairs are told from others hardly better than by chance.
CHANCE = 0.55
# Other targets that each target is compared with.
_OTHERS = 8


def chance_to_tell(
    own: FloatArray, targets: Int64Array, with_others: Callable[[Int64Array], FloatArray], seed: int
) -> float | None:
    """The chance that a pair is more similar than its source with another target, ties counting one half.

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
