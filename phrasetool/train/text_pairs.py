"""What a translator learns from: pairs of texts that are short enough, in ids of the words that it is to know."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int64Array, Phrases
from phrasetool.train.data import PhrasePairs, frequent_words, held_out_groups, in_vocabulary
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


def source_vocabulary(pairs: TextPairs, min_count: int, most: int) -> Vocabulary:
    """The source words seen often enough, see `frequent_words`."""
    return frequent_words(pairs.sources, pairs.source_words, min_count, most)


def target_vocabulary(
    pairs: TextPairs, min_count: int, most: int, known: Collection[bytes] | None = None
) -> Vocabulary:
    """The target words seen often enough that have a vector.

    Args:
        pairs: in which they are counted.
        min_count: words seen less often are left out.
        most: how many to keep at most; 0 for all.
        known: words with a vector; all if None.
    """
    kept = frequent_words(pairs.targets, pairs.target_words, min_count, most)
    if known is None:
        return kept
    ids = [i for i, word in enumerate(kept.words) if i == UNKNOWN or word in known]
    counts = kept.counts[ids]
    counts[UNKNOWN] += kept.counts.sum() - counts.sum()
    return Vocabulary([kept.words[i] for i in ids], counts.tolist())
