"""Wrong targets of the same batch: each sentence is encoded once, however many pairs it is in."""

from __future__ import annotations

import numpy as np

from phrasetool.phrases import Int64Array, Mask


def batch_negatives(wrong: Mask, count: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Draw wrong targets for each source, without repetition.

    Args:
        wrong: which of T targets are no translation of which of B sources, shape (B, T).
        count: targets for each source; fewer where there are not so many.
        rng: draws.

    Returns:
        Rows of sources and of targets, each of shape (K,), K at most B * count.
    """
    drawn = np.where(wrong, rng.random(wrong.shape), 2.0)
    chosen = np.argsort(drawn, axis=1)[:, :count]
    rows = np.repeat(np.arange(len(wrong)), chosen.shape[1])
    columns = chosen.ravel()
    good = wrong[rows, columns]
    return rows[good], columns[good]


def epoch_batches(pairs: int, size: int, rng: np.random.Generator) -> list[Int64Array]:
    """All pairs in random order, in batches of about one size: none is left with a pair or two to tell apart."""
    return [np.asarray(part) for part in np.array_split(rng.permutation(pairs), -(-pairs // size))]
