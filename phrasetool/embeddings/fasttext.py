"""Train word vectors with gensim's fastText (Bojanowski et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from phrasetool.phrases import FloatArray

# Hashes of character n-grams.  fastText's own program takes ten times as many; texts that are trained on here have
# fewer n-grams than these.
_BUCKETS = 200_000
_PRIVATE = 0xF000
# Passes over a text, and how many of its words they are to see together, if that many passes will do.  Five passes over
# 250,000 words leave all vectors alike; a translator that is to predict them learns nothing.
_PASSES, _MOST_PASSES, _WORDS = 5, 50, 8_000_000


def train_fasttext(sentences: Iterable[list[bytes]], dimension: int, seed: int) -> dict[bytes, FloatArray]:
    """Skip-gram vectors of words and their n-grams of 3 to 6 characters, on one thread (a seed fixes the result).

    As fastText's own program by default (window 5, 5 negative samples, 5 passes, step size 0.05), but for its sizes,
    and for texts of fewer than 1.6 million words, which get more passes.

    Args:
        sentences: words as byte strings in UTF-8; other bytes are kept apart.
        dimension: d.
        seed: of gensim's random numbers.

    Returns:
        word -> float32 of shape (d,); empty if there is no word.
    """
    from gensim.models import FastText

    names: dict[bytes, str] = {}
    text = [[names.setdefault(word, _name(word)) for word in sentence] for sentence in sentences]
    passes = min(max(_PASSES, math.ceil(_WORDS / max(sum(map(len, text)), 1))), _MOST_PASSES)
    model = FastText(
        vector_size=dimension, window=5, sg=1, negative=5, min_count=1, workers=1, seed=seed, epochs=passes, alpha=0.05,
        min_n=3, max_n=6, bucket=_BUCKETS, sample=1e-4,
    )  # fmt: skip
    model.build_vocab(corpus_iterable=text)
    if not len(model.wv):
        return {}
    model.train(corpus_iterable=text, total_examples=len(text), epochs=model.epochs)
    return {word: np.asarray(model.wv[name], np.float32) for word, name in names.items()}


def _name(word: bytes) -> str:
    """What gensim calls a word: its text; a byte that is not UTF-8 is a character for private use."""
    text = word.decode("utf-8", "surrogateescape")
    return "".join(chr(_PRIVATE + ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)
