"""Test which pairs of tag sequences occur together in a sentence pair, one in its source, the other in its target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import Int64Array, Phrases

# A sequence is hashed to the number whose digits are its tags, modulo 2^64; the base is odd, so no power of it is 0.
_BASE = np.uint64(0x9E3779B97F4A7C15)
# Maximum number of sequences times sentences, and of pairs, that are tested together.
_CELLS = 1 << 26
_PAIRS = 1 << 16


class TagSupport:
    """Record of which pairs of tag sequences occur together in a sentence pair.

    A sequence occurs in a sentence if it is the tags of consecutive words.  Sentence pairs are not kept; a pair of
    sequences that has occurred is not tested again.  Two sequences with the same hash of 64 bits are treated as equal
    (among a million sequences, with a probability of 10^-7).

    Args:
        sources, targets: P and Q distinct sequences of tag numbers, none empty.
        pairs: int64, shape (K, 2): rows of sources and of targets.

    Attributes:
        supported: whether each pair has occurred, bool, shape (K,).
    """

    def __init__(self, sources: Phrases, targets: Phrases, pairs: Int64Array) -> None:
        self._sides, self._pairs = (sources, targets), pairs
        self.supported: npt.NDArray[np.bool_] = np.zeros(len(pairs), np.bool_)

    def add(self, sources: Phrases, targets: Phrases) -> None:
        """Add the tags of N sentence pairs."""
        together = max(8, _CELLS // max(1, *map(len, self._sides)) // 8 * 8)
        for first in range(0, len(sources), together):
            rows = np.arange(first, min(first + together, len(sources)))
            left, right = (
                occurrences(sequences, sentences.select(rows))
                for sequences, sentences in zip(self._sides, (sources, targets), strict=True)
            )
            open_pairs = np.flatnonzero(~self.supported)
            for begin in range(0, len(open_pairs), _PAIRS):
                part = open_pairs[begin : begin + _PAIRS]
                source_rows, target_rows = self._pairs[part].T
                self.supported[part] = (left[source_rows] & right[target_rows]).any(axis=1)


def occurrences(sequences: Phrases, sentences: Phrases) -> npt.NDArray[np.uint8]:
    """Return the sentences in which each sequence occurs.

    Args:
        sequences: P distinct sequences of numbers, none empty.
        sentences: N sequences of numbers.

    Returns:
        Shape (P, (N + 7) // 8): a bit per sentence, as packed by `numpy.packbits`.
    """
    occurs = np.zeros((len(sequences), len(sentences)), np.bool_)
    sentence_of = np.repeat(np.arange(len(sentences)), sentences.lengths)
    for length in np.unique(sequences.lengths).tolist():
        rows = np.flatnonzero(sequences.lengths == length)
        hashes = _hashes(sequences.words, length)[sequences.offsets[rows]]
        order = np.argsort(hashes)
        hashes, rows = hashes[order], rows[order]
        windows = _hashes(sentences.words, length)
        inside = sentence_of[: len(windows)] == sentence_of[length - 1 : length - 1 + len(windows)]
        nearest = np.minimum(np.searchsorted(hashes, windows), len(hashes) - 1)
        matches = np.flatnonzero(inside & (hashes[nearest] == windows))
        occurs[rows[nearest[matches]], sentence_of[matches]] = True
    return np.packbits(occurs, axis=1)


def _hashes(words: npt.NDArray[np.int32], length: int) -> npt.NDArray[np.uint64]:
    """Hash every run of `length` consecutive words; element i is the hash of the run that begins at word i."""
    count = max(0, len(words) - length + 1)
    digits = words.astype(np.uint64) + np.uint64(1)
    result = np.zeros(count, np.uint64)
    for step in range(length):
        result = result * _BASE + digits[step : step + count]
    return result
