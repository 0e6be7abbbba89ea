"""Training pairs of texts: sentences and their translations, their vocabularies, and a held-out set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int64Array, Phrases
from phrasetool.training.data import (
    PhrasePairs,
    fingerprint,
    frequent_words,
    held_out_groups,
    in_vocabulary,
    text_parts,
)
from phrasetool.unique_phrases import number_distinct
from phrasetool.vocabulary import UNKNOWN, Vocabulary


@dataclass(frozen=True)
class TextPairs:
    """N texts and their translations.

    Attributes:
        sources, targets: N texts each, in ids of the words.
        source_words, target_words: distinct, unescaped.
        escaped: whether words were written with Moses' escapes.
    """

    sources: Phrases
    targets: Phrases
    source_words: Sequence[bytes]
    target_words: Sequence[bytes]
    escaped: bool = False

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, index: Int64Array) -> TextPairs:
        """Some of the pairs; index int64, shape (K,)."""
        sides = self.sources.select(index), self.targets.select(index)
        return TextPairs(*sides, self.source_words, self.target_words, self.escaped)

    def up_to(self, max_length: int) -> TextPairs:
        """The pairs that have so many words a side at most.

        Raises:
            ValueError: there is none.
        """
        longest = np.maximum(self.sources.lengths, self.targets.lengths)
        if not (longest <= max_length).any():
            raise ValueError(f"no pair has {max_length} words or fewer a side")
        return self.select(np.flatnonzero(longest <= max_length))

    def in_ids(self, source: Vocabulary, target: Vocabulary) -> PhrasePairs:
        """The pairs in ids of vocabularies; words that these lack are unknown."""
        sources = in_vocabulary(self.sources, self.source_words, source)
        targets = in_vocabulary(self.targets, self.target_words, target)
        return PhrasePairs(sources, targets, np.ones(len(self), np.int64), source, target)

    def source_vocabulary(self, min_count: int, max_words: int) -> Vocabulary:
        """Return the frequent source words, see `frequent_words`."""
        return frequent_words(self.sources, self.source_words, min_count, max_words)

    def target_vocabulary(self, min_count: int, max_words: int, known: Collection[bytes] | None = None) -> Vocabulary:
        """Return the frequent target words that have a vector.

        Args:
            min_count: words seen less often are left out.
            max_words: maximum number of words; 0 for all.
            known: words with a vector; None for all.
        """
        frequent = frequent_words(self.targets, self.target_words, min_count, max_words)
        if known is None:
            return frequent
        ids = [i for i, word in enumerate(frequent.words) if i == UNKNOWN or word in known]
        counts = frequent.counts[ids]
        counts[UNKNOWN] += frequent.counts.sum() - counts.sum()
        return Vocabulary([frequent.words[i] for i in ids], counts.tolist())

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ when a text or a word differs."""
        return fingerprint(text_parts((self.sources, self.targets), (self.source_words, self.target_words)))


def held_out(pairs: TextPairs, seed: int) -> tuple[TextPairs, TextPairs]:
    """What to learn from, and a development set: all pairs of one source in twenty, at most 2,000 pairs.

    Args:
        pairs: at least two different sources.
        seed: draws the sources.

    Raises:
        ValueError: there is one source only.
    """
    numbers, firsts = number_distinct(pairs.sources)
    if len(firsts) < 2:
        raise ValueError("all pairs have one source: none can be held out; name a development set")
    held = held_out_groups(numbers, np.random.default_rng(seed))
    return pairs.select(np.flatnonzero(~held)), pairs.select(np.flatnonzero(held))
