"""Random bad translations, and the area under the ROC curve (AUC) between true pairs and others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int64Array, Phrases

# An AUC below this is regarded as no better than chance.
CHANCE = 0.55
# Number of random targets with which each target is compared.
_OTHERS = 8


def replace_words(phrases: Phrases, vocabulary: int, rng: np.random.Generator) -> Phrases:
    """Replace every word by a random other word of the vocabulary, for bad translations (section 3.3.2).

    The lengths are kept, a replaced word never equals the original, and the unknown word (id 0) is never drawn.

    Args:
        phrases: N phrases.
        vocabulary: size of the vocabulary, at least 3.
        rng: source of randomness.

    Raises:
        ValueError: the vocabulary is smaller.
    """
    if vocabulary < 3:
        raise ValueError(f"a vocabulary of {vocabulary} words has no other word to draw")
    # Draw from all words except 0 and the original: numbers from the original on are shifted by one.
    known = phrases.words > 0
    drawn = 1 + (rng.random(len(phrases.words)) * (vocabulary - 1 - known)).astype(np.int32)
    drawn += known & (drawn >= phrases.words)
    return Phrases(phrases.offsets, drawn.astype(np.int32))


def replace_words_by_frequency(phrases: Phrases, vocabulary: int, rng: np.random.Generator) -> Phrases:
    """Replace every word by another one, drawn from the running words of all phrases.

    Words are drawn in proportion to their counts, so that frequency does not distinguish bad translations from good
    ones.  The lengths are kept, a replaced word never equals the original, and the unknown word (id 0) is never drawn.

    Args:
        phrases: N phrases.
        vocabulary: size of the vocabulary, at least 3; if the phrases have no other word, all of it is drawn from.
        rng: source of randomness.
    """
    words = phrases.words
    running = np.sort(words[words > 0])
    # The occurrences of the original are adjacent, and the draw skips them.
    first, last = np.searchsorted(running, words, "left"), np.searchsorted(running, words, "right")
    others = len(running) - (last - first)
    indices = (rng.random(len(words)) * others).astype(np.int64)
    indices += np.where(indices >= first, last - first, 0)
    drawn = replace_words(phrases, vocabulary, rng).words
    drawn[others > 0] = running[indices[others > 0]]
    return Phrases(phrases.offsets, drawn)


def pairwise_auc(
    own: FloatArray, targets: Int64Array, with_others: Callable[[Int64Array], FloatArray], seed: int
) -> float | None:
    """Return the probability that a pair scores higher than its source with a random other target; ties count one half.

    Args:
        own: similarities of N pairs, shape (N,).
        targets: numbers of the distinct targets of the pairs, int64, shape (N,).
        with_others: returns the similarities of the N sources with other targets, given by their numbers, shape (N,).
        seed: seed of the choice of other targets, which are drawn from those of the pairs.

    Returns:
        A probability; None if no other target was drawn.
    """
    rng = np.random.default_rng(seed)
    above, compared = 0.0, 0
    for _ in range(_OTHERS):
        other_targets = targets[rng.integers(0, len(own), len(own))]
        differ = other_targets != targets
        drawn = with_others(other_targets)
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
