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


def replace_words_by_frequency(phrases: Phrases, vocabulary: int, rng: np.random.Generator) -> Phrases:
    """Replace every word by another one, drawn from the running words of all phrases.

    A frequent word is drawn as often as it occurs, so that frequency does not tell bad translations from good ones.
    The length stays, a replaced word never equals the original, and the unknown word (id 0) is never drawn.

    Args:
        phrases: N phrases.
        vocabulary: its size, at least 3; a word is drawn from all of it where the phrases have no other word.
        rng: source of randomness.
    """
    words = phrases.words
    running = np.sort(words[words > 0])
    # The occurrences of the original form a run, which the draw skips over.
    first, last = np.searchsorted(running, words, "left"), np.searchsorted(running, words, "right")
    others = len(running) - (last - first)
    places = (rng.random(len(words)) * others).astype(np.int64)
    places += np.where(places >= first, last - first, 0)
    drawn = replace_words(phrases, vocabulary, rng).words
    drawn[others > 0] = running[places[others > 0]]
    return Phrases(phrases.offsets, drawn)
