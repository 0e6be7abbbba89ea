"""Which pairs of tag sequences some sentence pair has: the one in its source, the other in its target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array, Phrases

# Odd, so that no power of it is 0: a sequence is the number whose digits are its tags, in arithmetic of 64 bits.
_BASE = np.uint64(0x9E3779B97F4A7C15)
# Sequences times sentences that are looked at together.
_CELLS = 1 << 26
_PAIRS = 1 << 16


class TagSupport:
    """Pairs of tag sequences, and whether a sentence pair was seen that has both.

    A sentence has a sequence if the tags of neighbouring words are the sequence.  Sentence pairs are looked at and
    forgotten; of a pair of sequences that was found nothing is asked again.  Two sequences with one number of 64 bits
    (of a million, one chance in 10^7) are one to it.

    Args:
        sources, targets: P and Q distinct sequences, in numbers of tags, none empty.
        pairs: int64, shape (K, 2): rows of sources and of targets.

    Attributes:
        found: bool, shape (K,).
    """

    def __init__(self, sources: Phrases, targets: Phrases, pairs: Int64Array) -> None:
        self._sides, self._pairs = (sources, targets), pairs
        self.found: npt.NDArray[np.bool_] = np.zeros(len(pairs), np.bool_)

    def add(self, sources: Phrases, targets: Phrases) -> None:
        """Look at the tags of N sentence pairs."""
        together = max(8, _CELLS // max(1, *map(len, self._sides)) // 8 * 8)
        for first in range(0, len(sources), together):
            rows = np.arange(first, min(first + together, len(sources)))
            left, right = (
                occurrences(wanted, sentences.select(rows))
                for wanted, sentences in zip(self._sides, (sources, targets), strict=True)
            )
            asked = np.flatnonzero(~self.found)
            for begin in range(0, len(asked), _PAIRS):
                part = asked[begin : begin + _PAIRS]
                one, other = self._pairs[part].T
                self.found[part] = (left[one] & right[other]).any(axis=1)


def occurrences(wanted: Phrases, sentences: Phrases) -> npt.NDArray[np.uint8]:
    """Which sentences have which sequences.

    Args:
        wanted: P distinct sequences of numbers, none empty.
        sentences: N of them.

    Returns:
        Shape (P, (N + 7) // 8): a bit a sentence, as by `numpy.packbits`.
    """
    found = np.zeros((len(wanted), len(sentences)), np.bool_)
    which = np.repeat(np.arange(len(sentences)), sentences.lengths)
    for length in np.unique(wanted.lengths).tolist():
        rows = np.flatnonzero(wanted.lengths == length)
        numbers = _numbers(wanted.words, length)[wanted.offsets[rows]]
        order = np.argsort(numbers)
        numbers, rows = numbers[order], rows[order]
        windows = _numbers(sentences.words, length)
        inside = which[: len(windows)] == which[length - 1 : length - 1 + len(windows)]
        places = np.minimum(np.searchsorted(numbers, windows), len(numbers) - 1)
        hit = np.flatnonzero(inside & (numbers[places] == windows))
        found[rows[places[hit]], which[hit]] = True
    return np.packbits(found, axis=1)


def _numbers(words: npt.NDArray[np.int32], length: int) -> npt.NDArray[np.uint64]:
    """A number for each run of so many neighbouring words, that which begins at word i at place i."""
    count = max(0, len(words) - length + 1)
    digits = words.astype(np.uint64) + np.uint64(1)
    result = np.zeros(count, np.uint64)
    for step in range(length):
        result = result * _BASE + digits[step : step + count]
    return result
