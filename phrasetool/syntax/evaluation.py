"""Evaluation of how well vectors separate syntax, compared with vectors without syntax and with syntax only.

Sentences with the same sequence of parts of speech form a group (Liu et al. 2019, section 4.1, hold out groups of at
least six); accuracy@k is the share of the k nearest sentences by cosine that are of the same group.

Functional dissimilarity (section 4.3) is FD = ||L - minmax(D)||_F / n for n sentences: L holds edit distances over the
length of the longer sequence, D cosine distances.  The paper calls L the complement of the distance; then the vectors
that separate syntax best get the worst score.  Random vectors score as well as good ones, because all their distances
are about equal; the rank correlation of L and D does not have this defect.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import read_words
from phrasetool.syntax.model import SyntaxModel, SyntaxVectors, unit_vectors
from phrasetool.syntax.settings import TAGS, SyntaxShape

# Minimum size of a group.
LEAST = 6
# Group number of a sequence that belongs to no group.
NO_GROUP = -1
# Rows of the matrix of cosines that are computed together.
_ROWS = 256


def group_numbers(sequences: Sequence[Hashable], least: int = LEAST) -> Int64Array:
    """Group equal sequences; return the group of each, int64, shape (N,); `NO_GROUP` in groups smaller than `least`."""
    known: dict[Hashable, int] = {}
    numbers = np.array([known.setdefault(sequence, len(known)) for sequence in sequences], np.int64)
    counts = np.bincount(numbers, minlength=len(known))
    groups: Int64Array = np.where(counts[numbers] >= least, numbers, NO_GROUP) if len(numbers) else numbers
    return groups


def neighbour_accuracies(
    vectors: FloatArray, groups: Int64Array, counts: Sequence[int] = (1, 5), sentences: Int64Array | None = None,
    seed: int = 1,
) -> list[float]:  # fmt: skip
    """Return the accuracy@k of N texts for each k; see `neighbour_shares`."""
    return [
        float(mean) for mean in neighbour_shares(vectors, groups, counts, sentences, seed).sum(0) / max(len(groups), 1)
    ]


def neighbour_shares(
    vectors: FloatArray, groups: Int64Array, counts: Sequence[int] = (1, 5), sentences: Int64Array | None = None,
    seed: int = 1,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Return the share of the k nearest texts that belong to the same group, for each of N texts and each k.

    Args:
        vectors: shape (N, n); the cosine of a zero vector is 0.
        groups: group of each text, shape (N,).
        counts: values of k.
        sentences: number of the sentence that each text is a part of; texts of one sentence are not neighbours.
        seed: seed of the random order of texts that are equally near.

    Returns:
        Shape (N, len(counts)), in the order of the texts.
    """
    order = np.random.default_rng(seed).permutation(len(vectors))
    unit, groups = unit_vectors(vectors[order]), groups[order]
    parts = np.arange(len(order)) if sentences is None else sentences[order]
    shares = np.zeros((len(order), len(counts)))
    for first in range(0, len(order), _ROWS):
        rows = slice(first, first + _ROWS)
        cosines = unit[rows] @ unit.T
        cosines[parts[rows, None] == parts[None]] = -np.inf
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : max(counts)]
        same = groups[nearest] == groups[rows, None]
        shares[order[rows]] = np.stack([same[:, :count].mean(1) for count in counts], axis=1)
    return shares


def chance_accuracy(groups: Int64Array) -> float:
    """Return the expected accuracy@k of random neighbours."""
    sizes = np.unique(groups, return_counts=True)[1]
    return float((sizes * (sizes - 1)).sum() / max(len(groups) * (len(groups) - 1), 1))


@dataclass(frozen=True)
class Dissimilarity:
    """Agreement of the distances of vectors with the edit distances of the sequences of parts of speech.

    Attributes:
        fd: functional dissimilarity; lower is better.
        rho: Spearman's rank correlation of both distances over all pairs; higher is better; 0 if one is constant.
    """

    fd: float
    rho: float


def functional_dissimilarity(vectors: FloatArray, edits: DoubleArray, literal: bool = False) -> Dissimilarity:
    """Compare the cosine distances of vectors with edit distances.

    Args:
        vectors: vectors of at least two sentences, shape (N, n).
        edits: result of `edit_distances`, shape (N, N).
        literal: define L as the paper does, as the complement of the distance.
    """
    unit = unit_vectors(vectors).astype(np.float64)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, 0)
    least, span = distances.min(), np.ptp(distances)
    scaled = (distances - least) / (span if span > 0 else 1)
    expected = 1 - edits if literal else edits
    upper = np.triu_indices(len(edits), 1)
    rho = rank_correlation(edits[upper], distances[upper])
    return Dissimilarity(float(np.linalg.norm(expected - scaled) / len(edits)), rho)


def edit_distances(sequences: Sequence[Sequence[int]]) -> DoubleArray:
    """Return Levenshtein distances of N sequences, divided by the length of the longer one, float64, shape (N, N)."""
    texts = ["".join(map(chr, sequence)) for sequence in sequences]
    distances: DoubleArray = cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return distances


def rank_correlation(first: DoubleArray, second: DoubleArray) -> float:
    """Return Spearman's rho of N pairs of numbers; ties share their mean rank.  0 if one side is constant."""
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (first, second)]
    norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else 0.0


def _ranks(values: DoubleArray) -> DoubleArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    firsts: Int64Array = np.cumsum(counts) - counts
    ranks: DoubleArray = (firsts + (counts - 1) / 2)[inverse]
    return ranks


def random_vectors(count: int, dimension: int, seed: int) -> FloatArray:
    """Return normally distributed vectors, float32, shape (count, dimension)."""
    return np.random.default_rng(seed).standard_normal((count, dimension), np.float32)


def untrained_vectors(texts: Phrases, shape: SyntaxShape, seed: int) -> FloatArray:
    """Return the vectors of texts by an untrained encoder.

    Args:
        texts: texts as piece ids.
        shape: dimensions of the encoder.
        seed: seed of its initial values.
    """
    return SyntaxVectors(shape.initial_arrays(seed), shape)(texts)


def word_vectors(texts: Phrases) -> FloatArray:
    """Return TF-IDF vectors of N texts, scaled to length 1, float32, shape (N, columns).

    A word that occurs in a single text counts for the length of the vector, but has no column: it contributes to no
    product with another text.

    Args:
        texts: texts as word ids.
    """
    rows = np.repeat(np.arange(len(texts)), texts.lengths)
    _, words = np.unique(texts.words, return_inverse=True)
    cells, counts = np.unique(np.column_stack([rows, words]), axis=0, return_counts=True)
    text_counts = np.bincount(cells[:, 1])
    weights = counts * np.log(len(texts) / text_counts[cells[:, 1]])
    norms = np.sqrt(np.bincount(cells[:, 0], weights**2, minlength=len(texts)))
    columns = np.cumsum(text_counts > 1) - 1
    shared = text_counts[cells[:, 1]] > 1
    vectors = np.zeros((len(texts), int((text_counts > 1).sum())), np.float32)
    scaled = weights / np.where(norms > 0, norms, 1)[cells[:, 0]]
    vectors[cells[shared, 0], columns[cells[shared, 1]]] = scaled[shared]
    return vectors


def tag_vectors(sequences: Sequence[Sequence[int]]) -> FloatArray:
    """Return the counts of each part of speech in a sequence, float32, shape (N, 17)."""
    counts = np.zeros((len(sequences), TAGS), np.float32)
    for row, sequence in zip(counts, sequences, strict=True):
        np.add.at(row, np.array(sequence, np.int64), 1)
    return counts


# Sentences that are compared with each other for the dissimilarity.
_COMPARED = 1000


@dataclass(frozen=True)
class VectorQuality:
    """Quality of one kind of vectors.

    Attributes:
        nearest_1, nearest_5: accuracy@1 and accuracy@5.
        fd, rho: see `Dissimilarity`.
    """

    nearest_1: float
    nearest_5: float
    fd: float
    rho: float


@dataclass(frozen=True)
class SyntaxQuality:
    """Quality of vectors of tagged sentences.

    Attributes:
        sentences: number of distinct sentences.
        groups, grouped: number of groups of at least six sentences with the same sequence of parts of speech, and of
            their sentences.
        compared: number of sentences whose distances are compared.
        chance: expected accuracy of random neighbours.
        literal: whether FD is computed as the paper defines it.
        vectors: quality by name: vectors of the model, TF-IDF of words, random vectors, vectors of an untrained
            encoder, and counts of the parts of speech.
    """

    sentences: int
    groups: int
    grouped: int
    compared: int
    chance: float
    literal: bool
    vectors: dict[str, VectorQuality]


def syntax_quality(
    model: SyntaxModel, sentences: Sequence[bytes], tags: Sequence[Sequence[int]], seed: int = 1,
    literal: bool = False, origins: Int64Array | None = None,
) -> SyntaxQuality:  # fmt: skip
    """Measure an encoder.

    Args:
        model: the encoder.
        sentences: N sentences, words separated by spaces; repeated sentences are ignored.
        tags: tag numbers of each sentence.
        seed: seed of the random vectors, of the untrained encoder, and of the choice of sentences to compare.
        literal: compute FD as the paper defines it.
        origins: for phrases, the number of the sentence that each is from; phrases of one sentence are not neighbours.

    Raises:
        ValueError: no six sentences have the same sequence of parts of speech.
    """
    chosen = list({sentence: number for number, sentence in reversed(list(enumerate(sentences)))}.values())[::-1]
    lines, kept = [sentences[number] for number in chosen], [tuple(tags[number]) for number in chosen]
    groups = group_numbers(kept)
    inside = np.flatnonzero(groups != NO_GROUP)
    if not len(inside):
        raise ValueError("no six different sentences have the same sequence of parts of speech")
    compared = np.sort(np.random.default_rng([seed, 1]).permutation(len(lines))[:_COMPARED])
    edits = edit_distances([kept[number] for number in compared.tolist()])
    parts = None if origins is None else origins[chosen][inside]
    quality = {}
    for name, vectors in _vectors(model, lines, kept, seed).items():
        accuracies = neighbour_accuracies(vectors[inside], groups[inside], (1, 5), parts, seed)
        dissimilarity = functional_dissimilarity(vectors[compared], edits, literal)
        quality[name] = VectorQuality(accuracies[0], accuracies[1], dissimilarity.fd, dissimilarity.rho)
    numbers = groups[inside]
    return SyntaxQuality(
        len(lines), len(np.unique(numbers)), len(inside), len(compared), chance_accuracy(numbers), literal, quality
    )


def syntax_distances(
    model: SyntaxModel, sentences: Sequence[bytes], tags: Sequence[Sequence[int]], seed: int = 1,
    literal: bool = False,
) -> dict[str, Dissimilarity]:  # fmt: skip
    """Compare distances of vectors with edit distances of parts of speech, without groups of sentences.

    Args:
        model, sentences, tags, seed, literal: see `syntax_quality`; if there are more than 1,000 sentences, a random
            sample is compared.

    Returns:
        Dissimilarity by name of the vectors, as in `SyntaxQuality`.
    """
    drawn = np.sort(np.random.default_rng([seed, 1]).permutation(len(sentences))[:_COMPARED]).tolist()
    lines, kept = [sentences[number] for number in drawn], [tags[number] for number in drawn]
    edits = edit_distances(kept)
    return {
        name: functional_dissimilarity(vectors, edits, literal)
        for name, vectors in _vectors(model, lines, kept, seed).items()
    }


def _vectors(
    model: SyntaxModel, lines: Sequence[bytes], tags: Sequence[Sequence[int]], seed: int
) -> dict[str, FloatArray]:
    texts, words = read_words(lines)
    return {
        "model": model.encode_texts(texts, words),
        "words": word_vectors(texts),
        "untrained": untrained_vectors(model.in_pieces(texts, words), model.shape, seed),
        "random": random_vectors(len(lines), model.dimension, seed),
        "tags": tag_vectors(tags),
    }
