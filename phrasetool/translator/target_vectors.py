"""The vectors that a translator predicts: one for every target word, for unknown words, and for the end.

They have length one.  The end of a sentence has equal components; the unknown word has the direction of the mean of
words outside the vocabulary (Kumar and Tsvetkov 2019), or the opposite.  There is no vector of zeros among them (the
beginning of a sentence is zeros where the decoder reads it, and is never searched for): it would be the nearest
whenever all cosines are negative.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phrasetool.phrases import FloatArray, Mask
from phrasetool.vocabulary import Vocabulary


def target_table(
    vocabulary: Vocabulary, known: Mapping[bytes, FloatArray], centring: str, unknown: str, seed: int
) -> FloatArray:
    """The vectors that are predicted.

    Args:
        vocabulary: V words, the unknown word first; all others must be known.
        known: word -> vector of shape (d,), of more words than the vocabulary has: the others stand for unknown words.
        centring: `plain` takes vectors as they are, `centred` without the mean of the vocabulary, `random` draws a
            direction for every word (a control, in which nothing is learnt about words from other words).
        unknown: `mean` or `negated`; without words outside the vocabulary, the least frequent of it stand for them,
            two at least (one would be told from the unknown word by nothing).
        seed: of random directions.

    Returns:
        float32, shape (V + 1, d), of length one; the end's vector is the last.

    Raises:
        KeyError: a word of the vocabulary is not known.
        ValueError: there are fewer than two words beside the unknown one; or a vector is zero or not finite, or that of
            another word, naming it.
    """
    words = vocabulary.words[1:]
    if not words:
        raise ValueError("no target word has a vector")
    if len(words) == 1:
        word = words[0].decode("utf-8", "replace")
        raise ValueError(f"{word} is the only target word with a vector: there is nothing to choose from")
    inside = set(words)
    outside = [word for word in known if word not in inside] or words[-max(2, len(words) // 10) :]
    d = len(known[words[0]])
    rows = np.stack([known[word] for word in words])
    others = np.stack([known[word] for word in outside])
    _check(words, rows)
    _check_finite(outside, others)
    if centring == "random":
        rng = np.random.default_rng(seed)
        rows, others = rng.normal(size=rows.shape).astype(np.float32), rng.normal(size=(1, d)).astype(np.float32)
    elif centring == "centred":
        mean = rows.mean(0, dtype=np.float64).astype(np.float32)
        rows, others = rows - mean, others - mean
        _check_directions(words, rows)
    none = _unit(_unit(others).mean(0, dtype=np.float64)[None]) * (-1 if unknown == "negated" else 1)
    end = np.full((1, d), d**-0.5)
    table: FloatArray = np.concatenate([none, _unit(rows), end]).astype(np.float32)
    return table


def _unit(vectors: FloatArray) -> FloatArray:
    """The vectors at length one; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


def _check(words: list[bytes], rows: FloatArray) -> None:
    """Refuse what has no direction, and what cannot be told apart.

    Raises:
        ValueError: see `target_table`.
    """
    _check_directions(words, rows)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    twins = np.flatnonzero(first[inverse.ravel()] != np.arange(len(rows)))
    if len(twins):
        one, other = (words[int(i)].decode("utf-8", "replace") for i in (first[inverse.ravel()[twins[0]]], twins[0]))
        raise ValueError(f"the target words {one} and {other} have the same vector")


def _check_directions(words: list[bytes], rows: FloatArray) -> None:
    """Refuse vectors that have no direction.

    Raises:
        ValueError: naming the first.
    """
    _check_finite(words, rows)
    _refuse(words, np.linalg.norm(rows, axis=1) == 0, "is zero")


def _check_finite(words: list[bytes], rows: FloatArray) -> None:
    """Refuse vectors with a number that is not finite.

    Raises:
        ValueError: naming the first.
    """
    faulty: Mask = ~np.isfinite(rows.sum(1, dtype=np.float64))
    _refuse(words, faulty, "is not finite")


def _refuse(words: list[bytes], faulty: Mask, what: str) -> None:
    if faulty.any():
        word = words[int(np.argmax(faulty))].decode("utf-8", "replace")
        raise ValueError(f"the vector of the target word {word} {what}")
