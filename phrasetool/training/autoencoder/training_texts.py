"""The texts that an autoencoder learns from: those short enough, in ids of their frequent words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phrasetool.phrases import Phrases
from phrasetool.train.data import frequent_words, in_vocabulary
from phrasetool.training.autoencoder.autoencoder_settings import AutoencoderSettings
from phrasetool.vocabulary import Vocabulary


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
