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
    components: int = 0,
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
        components: so many first principal components of the known vectors are removed before they are scaled.

    Returns:
        float32, shape (V, n).

    Raises:
        ValueError: a known vector has another dimension, or as many components are to be removed.
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
        if components:
            matrix = without_first_components(matrix, components)
        size = float(np.sqrt(np.mean(matrix.astype(np.float64) ** 2)))
        vectors[rows] = matrix * (scale / size if size > 0 else 1.0)
    return vectors


def components_to_remove(dimension: int) -> int:
    """How many first principal components word vectors of a size can do without: n / 100, at least one.

    Mu and Viswanath (2018), "All-but-the-Top: Simple and Effective Postprocessing for Word Representations".  Removing
    the mean alone does not part phrases of word2vec vectors: the mean is that of rare words, and the first component
    is mostly how frequent a word is, which nearly all words of phrases have in common.

    Args:
        dimension: n.
    """
    return max(1, dimension // 100)


def without_first_components(vectors: FloatArray, components: int) -> FloatArray:
    """Vectors without what they have along their first principal components (Mu and Viswanath 2018, algorithm 1).

    Args:
        vectors: shape (N, n), with the mean zero.
        components: how many, less than n.

    Returns:
        float32, shape (N, n).

    Raises:
        ValueError: as many components as dimensions, or more, are to be removed.
    """
    dimension = vectors.shape[1]
    if not 0 <= components < dimension:
        raise ValueError(f"{components} components cannot be removed from vectors of dimension {dimension}")
    exact = vectors.astype(np.float64)
    _, directions = np.linalg.eigh(np.einsum("ij,ik->jk", exact, exact))
    # The last bits of a factorisation depend on the number of threads, so they are rounded away; einsum's sums do not.
    first = directions[:, dimension - components :].astype(np.float32).astype(np.float64)
    along = np.einsum("ij,jk->ik", exact, first)
    rest: FloatArray = (exact - np.einsum("ik,jk->ij", along, first)).astype(np.float32)
    return rest
