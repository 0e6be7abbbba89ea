"""How well the vectors of an encoder tell syntax, beside vectors that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.sentences import read_words
from phrasetool.syntax.dissimilarity import Dissimilarity, edit_distances, functional_dissimilarity
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.syntax_controls import random_vectors, tag_vectors, untrained_vectors, word_vectors
from phrasetool.syntax.tag_groups import NO_GROUP, chance_accuracy, group_numbers, neighbour_accuracies

# Sentences that are compared with each other for the dissimilarity.
_COMPARED = 1000


@dataclass(frozen=True)
class VectorQuality:
    """Of one kind of vectors.

    Attributes:
        nearest_1, nearest_5: share of the nearest, and of the five nearest, that are of the same group.
        fd, rho: see `Dissimilarity`.
    """

    nearest_1: float
    nearest_5: float
    fd: float
    rho: float


@dataclass(frozen=True)
class SyntaxQuality:
    """Of tagged sentences.

    Attributes:
        sentences: different ones.
        groups, grouped: groups of six and more with one sequence of parts of speech, and their sentences.
        compared: sentences whose distances are compared.
        chance: accuracy of neighbours that are drawn.
        literal: whether FD is as the paper defines it.
        vectors: name -> what they are worth: those of the model, of words, of noise, of an untrained encoder, and the
            counts of the parts of speech themselves.
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
        model: any.
        sentences: N of them, words between spaces; of equal ones the first counts.
        tags: of each, in numbers of parts of speech.
        seed: of noise, of the untrained encoder, and of the sentences whose distances are compared.
        literal: FD as the paper defines it.
        origins: of phrases, number of the sentence that each is from; those of one sentence are no neighbours.

    Raises:
        ValueError: no six sentences have one sequence of parts of speech.
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
    found = {}
    for name, vectors in _vectors(model, lines, kept, seed).items():
        near = neighbour_accuracies(vectors[inside], groups[inside], (1, 5), parts, seed)
        apart = functional_dissimilarity(vectors[compared], edits, literal)
        found[name] = VectorQuality(near[0], near[1], apart.fd, apart.rho)
    numbers = groups[inside]
    return SyntaxQuality(
        len(lines), len(np.unique(numbers)), len(inside), len(compared), chance_accuracy(numbers), literal, found
    )


def syntax_distances(
    model: SyntaxModel, sentences: Sequence[bytes], tags: Sequence[Sequence[int]], seed: int = 1,
    literal: bool = False,
) -> dict[str, Dissimilarity]:  # fmt: skip
    """How well distances agree with those of the parts of speech, where no groups are asked for.

    Args:
        model, sentences, tags, seed, literal: see `syntax_quality`; of more sentences than are compared, some are
            drawn.

    Returns:
        Name -> what the vectors are worth, as in `SyntaxQuality`.
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
