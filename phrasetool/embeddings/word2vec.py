"""Train word vectors with gensim's word2vec (Mikolov et al. 2013), as the paper does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from phrasetool.phrases import FloatArray, Phrases
from phrasetool.vocabulary import Vocabulary


def train_word2vec(sentences: Iterable[list[bytes]], dimension: int, seed: int) -> dict[bytes, FloatArray]:
    """Skip-gram vectors with negative sampling, window 5, on one thread (so that a seed fixes the result).

    Args:
        sentences: words as byte strings; any encoding.
        dimension: n.
        seed: of gensim's random numbers.

    Returns:
        word -> float32 of shape (n,); empty if there is no word.
    """
    from gensim.models import Word2Vec

    # Latin-1 maps bytes to characters one to one, whatever the encoding of the text is.
    text = [[word.decode("latin-1") for word in sentence] for sentence in sentences]
    model = Word2Vec(
        vector_size=dimension, window=5, sg=1, negative=5, min_count=1, workers=1, seed=seed, epochs=5,
        sample=1e-4,
    )  # fmt: skip
    model.build_vocab(text)
    if not len(model.wv):
        return {}
    model.train(text, total_examples=len(text), epochs=model.epochs)
    return {word.encode("latin-1"): np.asarray(model.wv[word], np.float32) for word in model.wv.index_to_key}


def phrase_sentences(phrases: Phrases, vocabulary: Vocabulary) -> Iterator[list[bytes]]:
    """Phrases as sentences of words, for training on the pairs themselves."""
    for phrase in phrases:
        yield [vocabulary.words[word] for word in phrase]
