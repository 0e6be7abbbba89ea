"""Batches of examples of about one length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import Int64Array


def length_batches(
    order: Int64Array, lengths: Sequence[Int64Array], size: int, rng: np.random.Generator, pool: int | None = None
) -> list[Int64Array]:
    """Every example once, in batches of neighbouring lengths, in random order.

    Args:
        order: numbers of the N examples; those of equal lengths stay in it.
        lengths: of all examples, shape (N,) each; the first counts most.
        size: of a batch.
        rng: draws the order of the batches.
        pool: so many batches' examples are put in order of length together; None for all.  With fewer, more different
            examples meet in a batch.
    """
    found: list[Int64Array] = []
    step = size * pool if pool else max(1, len(order))
    for first in range(0, len(order), step):
        part = order[first : first + step]
        part = part[np.lexsort([one[part] for one in reversed(lengths)])]
        found += [part[start : start + size] for start in range(0, len(part), size)]
    return [found[number] for number in rng.permutation(len(found))]
