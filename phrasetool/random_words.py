"""Bad translations made of random words: negatives for training, and a yardstick for evaluation."""

from __future__ import annotations

import numpy as np

from phrasetool.phrases import Phrases


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
