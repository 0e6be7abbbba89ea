"""Wrong targets that contain the right one, or are a part of it: what a classifier must tell by more than meaning."""

from __future__ import annotations

import numpy as np

from phrasetool.pair_classifier.known_translations import KnownTranslations
from phrasetool.phrases import Int32Array, Int64Array, Phrases

# Share of the words that a cut leaves.
_LEAST, _MOST = 0.35, 0.65
# Draws before a pair is given up: of a source with so many translations that chance finds no wrong target.
_TRIES = 20


def containment_negatives(
    targets: Phrases, pairs: Int64Array, known: KnownTranslations, rng: np.random.Generator
) -> tuple[Phrases, Int64Array]:
    """For each of some pairs a target that is wrong by containment: cut to 35 to 65 % of its words, or with another
    target joined to it, before or behind; half of each, as far as targets can be cut.

    Args:
        targets: of all N pairs.
        pairs: numbers of B of them.
        known: translations, none of which is given.
        rng: draws.

    Returns:
        The wrong targets, at most B, and the number of the pair of each.
    """
    found, kept = [], []
    for pair in pairs.tolist():
        for _ in range(_TRIES):
            made = _drawn(targets, pair, rng)
            if not known.has(pair, made):
                found.append(made)
                kept.append(pair)
                break
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(words) for words in found], dtype=np.int64)])
    words = np.concatenate([np.zeros(0, np.int32), *found])
    return Phrases(offsets, words), np.array(kept, np.int64)


def _drawn(targets: Phrases, pair: int, rng: np.random.Generator) -> Int32Array:
    """One that is wrong, or by chance right."""
    words = targets[pair]
    least, most = int(np.ceil(_LEAST * len(words))), int(np.floor(_MOST * len(words)))
    if rng.random() < 0.5 and least <= most:
        size = int(rng.integers(least, most + 1))
        first = int(rng.integers(0, len(words) - size + 1))
        return words[first : first + size]
    other = targets[int(rng.integers(len(targets)))]
    return np.concatenate([words, other] if rng.random() < 0.5 else [other, words])
