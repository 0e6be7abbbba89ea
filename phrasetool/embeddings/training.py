"""Training of word vectors with gensim, and initial vectors of a vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from phrasetool.phrases import FloatArray, Phrases
from phrasetool.vocabulary import Vocabulary

# Number of hash buckets of character n-grams.  The fastText program uses ten times as many; the training texts here
# have fewer n-grams than this.
_BUCKETS = 200_000
_PRIVATE = 0xF000
# Minimum and maximum number of passes over a text, and the number of running words to reach in all passes together.
# After five passes over 250,000 words, all vectors are alike, and a translator trained to predict them learns nothing.
_PASSES, _MOST_PASSES, _WORDS = 5, 50, 8_000_000


def train_word2vec(sentences: Iterable[list[bytes]], dimension: int, seed: int) -> dict[bytes, FloatArray]:
    """Train skip-gram vectors with negative sampling and window 5, on one thread, so that a seed fixes the result.

    Args:
        sentences: words as byte strings; any encoding.
        dimension: n.
        seed: seed of gensim's random numbers.

    Returns:
        word -> float32 of shape (n,); empty for a text without words.
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
    """Yield phrases as lists of words, for training on the pairs themselves."""
    for phrase in phrases:
        yield [vocabulary.words[word] for word in phrase]


def train_fasttext(sentences: Iterable[list[bytes]], dimension: int, seed: int) -> dict[bytes, FloatArray]:
    """Train skip-gram vectors of words and their character n-grams (3 to 6), on one thread; a seed fixes the result.

    The settings are the defaults of the fastText program (window 5, 5 negative samples, 5 passes, step size 0.05),
    except for the dimension, the number of buckets, the minimum count (1), and texts of fewer than 1.6 million words,
    which get more passes.

    Args:
        sentences: words as byte strings in UTF-8; bytes that are not UTF-8 stay distinct.
        dimension: d.
        seed: seed of gensim's random numbers.

    Returns:
        word -> float32 of shape (d,); empty for a text without words.
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
    """Return the name of a word in gensim: its text; a byte that is not UTF-8 becomes a private-use character."""
    text = word.decode("utf-8", "surrogateescape")
    return "".join(chr(_PRIVATE + ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)


def initial_vectors(
    vocabulary: Vocabulary,
    known: Mapping[bytes, FloatArray],
    dimension: int,
    scale: float,
    rng: np.random.Generator,
    components: int = 0,
) -> FloatArray:
    """Return an initial vector for every word.

    Known vectors (of the lower-cased form if that of the word is not known) are centred and scaled together, because
    the reconstruction can only reproduce values in (-1, 1), and most of them should be far from the ends.  All others,
    including that of the unknown word, are drawn from a normal distribution of the same scale.

    Args:
        vocabulary: V words.
        known: word -> vector of shape (n,).
        dimension: n.
        scale: root mean square of a component.
        rng: source of randomness.
        components: number of first principal components removed from the known vectors before they are scaled.

    Returns:
        float32, shape (V, n).

    Raises:
        ValueError: a known vector has another dimension, or `components` is not less than n.
    """
    vectors = rng.normal(0.0, scale, (len(vocabulary), dimension)).astype(np.float32)
    rows, known_vectors = [], []
    for row, word in enumerate(vocabulary.words):
        vector = known.get(word)
        if vector is None:
            vector = known.get(word.lower())
        if vector is not None and row > 0:
            if vector.shape != (dimension,):
                raise ValueError(f"the word vectors have dimension {len(vector)}, but {dimension} was requested")
            rows.append(row)
            known_vectors.append(vector)
    if rows:
        matrix = np.array(known_vectors, np.float32)
        matrix -= matrix.mean(0)
        if components:
            matrix = without_first_components(matrix, components)
        size = float(np.sqrt(np.mean(matrix.astype(np.float64) ** 2)))
        vectors[rows] = matrix * (scale / size if size > 0 else 1.0)
    return vectors


def components_to_remove(dimension: int) -> int:
    """Return the number of first principal components to remove from word vectors: n / 100, at least one.

    Mu and Viswanath (2018), "All-but-the-Top: Simple and Effective Postprocessing for Word Representations".  Removing
    the mean alone does not separate phrases of word2vec vectors: the mean is that of rare words, and the first
    component is mostly the frequency of a word, which nearly all words of phrases have in common.

    Args:
        dimension: n.
    """
    return max(1, dimension // 100)


def without_first_components(vectors: FloatArray, components: int) -> FloatArray:
    """Remove the first principal components from vectors (Mu and Viswanath 2018, algorithm 1).

    Args:
        vectors: shape (N, n), with the mean zero.
        components: number of components, less than n.

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
