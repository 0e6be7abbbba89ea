"""Phrase pairs to learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import Vocabulary


@dataclass(frozen=True)
class PhrasePairs:
    """N pairs of phrases and the vocabularies they are made of.

    Attributes:
        sources, targets: N phrases each.
        counts: int64, shape (N,), how often each pair was used, at least 1; see `weights`.
        source_vocabulary, target_vocabulary: what the word ids mean.
    """

    sources: Phrases
    targets: Phrases
    counts: Int64Array
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, rows: Int64Array) -> PhrasePairs:
        """The pairs with these numbers.

        Args:
            rows: int64, shape (M,).
        """
        return replace(
            self, sources=self.sources.select(rows), targets=self.targets.select(rows), counts=self.counts[rows]
        )

    def merged(self) -> PhrasePairs:
        """Every distinct pair once, in order of first occurrence, with the counts added up."""
        border = len(self.target_vocabulary) + len(self.source_vocabulary)
        numbers, firsts = number_distinct(_joined(self.sources, self.targets, border))
        counts = np.bincount(numbers, self.counts, len(firsts)).astype(np.int64)
        return replace(self.select(firsts), counts=counts)

    def weights(self, exponent: float) -> FloatArray:
        """Weights of the pairs in training: count^exponent, normalised to mean 1.

        Args:
            exponent: 0 weights every distinct pair equally (the paper trains "after removing the duplicates"), 1 every
                occurrence.

        Returns:
            float32, shape (N,).
        """
        powers = np.maximum(self.counts, 1).astype(np.float64) ** exponent
        weights: FloatArray = (powers / powers.mean()).astype(np.float32)
        return weights

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ when a pair, its count or a word differs."""
        texts = fingerprint((self.sources, self.targets), (self.source_vocabulary, self.target_vocabulary))
        return hashlib.sha256(texts.encode() + self.counts.tobytes()).hexdigest()[:16]


def log_shares(phrases: Phrases) -> FloatArray:
    """Logarithm of the share of the phrases that are equal to each phrase.

    This is the probability that a candidate drawn from the training pairs is that phrase.  It depends on the pairs
    alone, not on batches or threads.

    Args:
        phrases: one side of N pairs.

    Returns:
        float32, shape (N,), at most 0.
    """
    numbers, distinct = number_distinct(phrases)
    occurrences = np.bincount(numbers, minlength=len(distinct))
    shares: FloatArray = np.log(occurrences / max(len(numbers), 1))[numbers].astype(np.float32)
    return shares


def fingerprint(texts: Iterable[Phrases], vocabularies: Iterable[Vocabulary]) -> str:
    """Hexadecimal digits that differ when a text or a word differs."""
    digest = hashlib.sha256()
    for phrases in texts:
        digest.update(phrases.offsets.tobytes())
        digest.update(phrases.words.tobytes())
    for vocabulary in vocabularies:
        digest.update(b"\n".join(vocabulary.words))
    return digest.hexdigest()[:16]


def _joined(first: Phrases, second: Phrases, border: int) -> Phrases:
    """first[i] + [border] + second[i] for every i."""
    offsets = first.offsets + second.offsets + np.arange(len(first) + 1)
    words = np.full(offsets[-1], border, np.int32)
    shift = np.repeat(offsets[:-1] - first.offsets[:-1], first.lengths)
    words[np.arange(len(first.words)) + shift] = first.words
    shift = np.repeat(offsets[:-1] + first.lengths + 1 - second.offsets[:-1], second.lengths)
    words[np.arange(len(second.words)) + shift] = second.words
    return Phrases(offsets, words)
