"""The vocabulary of monolingual text: its frequent words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary


def frequent_words(texts: Phrases, words: Sequence[bytes], min_count: int, most: int) -> Vocabulary:
    """The words seen often enough, the most frequent first; the unknown word's count is that of all others together.

    Args:
        texts: in ids of `words`.
        words: distinct, unescaped.
        min_count: words seen less often are left out.
        most: how many to keep at most; 0 for all.
    """
    counts = np.bincount(texts.words, minlength=len(words))
    kept = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i] >= min_count and words[i] != UNKNOWN_WORD]
    kept = kept[:most] if most else kept
    unknown = int(counts.sum() - counts[kept].sum())
    return Vocabulary([UNKNOWN_WORD, *(words[i] for i in kept)], [unknown, *counts[kept].tolist()])


def in_vocabulary(texts: Phrases, words: Sequence[bytes], vocabulary: Vocabulary) -> Phrases:
    """The texts in ids of the vocabulary, given in ids of `words`; a word that it lacks is unknown."""
    ids = {word: i for i, word in enumerate(vocabulary.words)}
    table = np.array([ids.get(word, UNKNOWN) for word in words], np.int32)
    return Phrases(texts.offsets, table[texts.words] if len(table) else texts.words)
