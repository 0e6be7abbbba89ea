"""What an autoencoder learns from: the texts that are short enough, in ids of their frequent words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary


@dataclass(frozen=True)
class TrainingTexts:
    """What an autoencoder learns from.

    Attributes:
        texts: in ids of the vocabulary.
        vocabulary: the frequent words.
        left_out: how many texts were too long.
        unknown: the share of the words that is not in the vocabulary.
    """

    texts: Phrases
    vocabulary: Vocabulary
    left_out: int
    unknown: float


def training_texts(texts: Phrases, words: Sequence[bytes], settings: AutoencoderSettings) -> TrainingTexts:
    """Choose what to learn from.

    Args:
        texts: in ids of `words`, none without words.
        words: distinct, unescaped.
        settings: how long a text may be, and what the vocabulary holds.

    Raises:
        ValueError: no text is short enough.
    """
    short = texts.select(texts.lengths <= settings.max_length)
    if not len(short):
        raise ValueError(f"no line has {settings.max_length} words or fewer")
    vocabulary = frequent_words(short, words, settings.min_count, settings.vocabulary_size)
    left_out, unknown = len(texts) - len(short), vocabulary.counts[0] / len(short.words)
    return TrainingTexts(in_vocabulary(short, words, vocabulary), vocabulary, left_out, unknown)


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
