"""Phrase pairs to learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int64Array, Phrases
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import Vocabulary


@dataclass(frozen=True)
class PhrasePairs:
    """N pairs of phrases and the vocabularies they are made of.

    Attributes:
        sources, targets: N phrases each.
        counts: int64, shape (N,), how often a pair was used; kept for the record, training takes each pair once, as
            the paper does ("after removing the duplicates").
        source_vocabulary, target_vocabulary: what the word ids mean.
    """

    sources: Phrases
    targets: Phrases
    counts: Int64Array
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.sources)

    def merged(self) -> PhrasePairs:
        """Every distinct pair once, in order of first occurrence, with the counts added up."""
        border = len(self.target_vocabulary) + len(self.source_vocabulary)
        numbers, firsts = number_distinct(_joined(self.sources, self.targets, border))
        counts = np.bincount(numbers, self.counts, len(firsts)).astype(np.int64)
        return PhrasePairs(
            self.sources.select(firsts), self.targets.select(firsts), counts,
            self.source_vocabulary, self.target_vocabulary,
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ when a pair or a word differs."""
        return fingerprint((self.sources, self.targets), (self.source_vocabulary, self.target_vocabulary))


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
