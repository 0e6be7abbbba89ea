"""Word vectors for a vocabulary, ready to start training from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.phrases import FloatArray
from phrasetool.vocabulary import Vocabulary


def initial_vectors(
    vocabulary: Vocabulary,
    known: Mapping[bytes, FloatArray],
    dimension: int,
    scale: float,
    rng: np.random.Generator,
) -> FloatArray:
    """A start vector for every word.

    Known vectors are taken (a word's lower-cased form stands in for it if only that is known), centred, and scaled
    together, because what the reconstruction can reproduce lies in (-1, 1) and most of it should be far from the ends;
    all others, the unknown word included, are drawn from a normal distribution of the same scale.

    Args:
        vocabulary: V words.
        known: word -> vector of shape (n,).
        dimension: n.
        scale: root mean square of a component.
        rng: source of randomness.

    Returns:
        float32, shape (V, n).

    Raises:
        ValueError: a known vector has another dimension.
    """
    vectors = rng.normal(0.0, scale, (len(vocabulary), dimension)).astype(np.float32)
    rows, found = [], []
    for row, word in enumerate(vocabulary.words):
        vector = known.get(word)
        if vector is None:
            vector = known.get(word.lower())
        if vector is not None and row > 0:
            if vector.shape != (dimension,):
                raise ValueError(f"the word vectors have dimension {len(vector)}, but {dimension} was asked for")
            rows.append(row)
            found.append(vector)
    if rows:
        matrix = np.array(found, np.float32)
        matrix -= matrix.mean(0)
        size = float(np.sqrt(np.mean(matrix.astype(np.float64) ** 2)))
        vectors[rows] = matrix * (scale / size if size > 0 else 1.0)
    return vectors
