"""Vectors that know no syntax, or all of it, to hold those of an encoder against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import FloatArray, Phrases
from phrasetool.syntax.syntax_shape import TAGS, SyntaxShape
from phrasetool.syntax.syntax_vectors import SyntaxVectors


def random_vectors(count: int, dimension: int, seed: int) -> FloatArray:
    """Noise, float32, shape (count, dimension)."""
    return np.random.default_rng(seed).standard_normal((count, dimension), np.float32)


def untrained_vectors(texts: Phrases, shape: SyntaxShape, seed: int) -> FloatArray:
    """Those of an encoder of the same dimensions before training.

    Args:
        texts: in pieces.
        shape: the dimensions.
        seed: of its values.
    """
    return SyntaxVectors(shape.initial_arrays(seed), shape)(texts)


def word_vectors(texts: Phrases) -> FloatArray:
    """Frequencies of words times the logarithm of the inverse share of texts, of length 1; float32, shape (N, words).

    Words of one text alone are in its length, but have no column: they are in no product with another text.

    Args:
        texts: N of them, in numbers of words.
    """
    rows = np.repeat(np.arange(len(texts)), texts.lengths)
    _, words = np.unique(texts.words, return_inverse=True)
    cells, counts = np.unique(np.column_stack([rows, words]), axis=0, return_counts=True)
    seen = np.bincount(cells[:, 1])
    weights = counts * np.log(len(texts) / seen[cells[:, 1]])
    norms = np.sqrt(np.bincount(cells[:, 0], weights**2, minlength=len(texts)))
    columns = np.cumsum(seen > 1) - 1
    shared = seen[cells[:, 1]] > 1
    found = np.zeros((len(texts), int((seen > 1).sum())), np.float32)
    scaled = weights / np.where(norms > 0, norms, 1)[cells[:, 0]]
    found[cells[shared, 0], columns[cells[shared, 1]]] = scaled[shared]
    return found


def tag_vectors(sequences: Sequence[Sequence[int]]) -> FloatArray:
    """How often each part of speech is in a sequence: all but its order; float32, shape (N, 17)."""
    found = np.zeros((len(sequences), TAGS), np.float32)
    for row, sequence in zip(found, sequences, strict=True):
        np.add.at(row, np.array(sequence, np.int64), 1)
    return found
