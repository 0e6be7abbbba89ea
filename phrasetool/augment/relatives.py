"""Known words that are spelt or used like an unknown word, and the expected overlap of their translations.

The expected overlap is learnt from the table itself: rare known words are treated as unknown, and a logistic regression
predicts from the similarity features of two words how much of their translations they share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from phrasetool.augment.evidence import MOST_TARGETS, Proposal, WordEntries, WordEntry
from phrasetool.phrases import FloatArray

_GRAM = 3
# Maximum numbers of candidates for relatives of a word by letters, and by vectors.
_NEAR, _NEAREST = 30, 20
# Number of relatives whose translations are used.
_HEARD = 8
# Number of words whose relatives are cached.
_REMEMBERED = 1024
# Maximum count of words that are treated as unknown, and maximum number of them in training.
SELDOM, TAUGHT = 4, 1500
_FEATURES = 10
Doubles = npt.NDArray[np.float64]
_STEPS, _PRIOR = 50, 1e-3


@dataclass(frozen=True)
class Relative:
    """A known word that may share translations with an unknown one.

    Attributes:
        word: the known word.
        weight: expected share of its translations that the unknown word has, from 0 to 1.
        alike: whether both words begin with the same three letters or more.
    """

    word: str
    weight: float
    alike: bool


class Likeness:
    """Similarity features of an unknown word and known ones.

    Args:
        entries: known words.
        vectors: vectors of known and unknown words, all of the same length; words may be missing.
    """

    def __init__(self, entries: WordEntries, vectors: Mapping[str, FloatArray] | None = None) -> None:
        self._words = entries.ordered
        self._grams: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            for gram in _grams(word):
                self._grams.setdefault(gram, []).append(number)
        self._sizes = np.array([len(_grams(word)) for word in self._words])
        self._counts = np.log([max(entries.count(word), 0.5) for word in self._words])
        self._vectors = vectors
        if vectors is not None:
            size = len(next(iter(vectors.values()))) if vectors else 1
            rows = [vectors.get(word, np.zeros(size, np.float32)) for word in self._words]
            self._rows = _unit(np.stack(rows)) if rows else np.zeros((0, size), np.float32)

    def of(self, word: str) -> tuple[list[str], Doubles]:
        """Return K known words that may be related, except the word itself, and their features, shape (K, 10)."""
        grams = _grams(word)
        shared = Counter(number for gram in grams for number in self._grams.get(gram, ()))
        near = sorted(shared, key=lambda number: (-shared[number] / (self._sizes[number] + len(grams)), number))[:_NEAR]
        cosines = self._cosines(word)
        if cosines is not None:
            near += np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()
        chosen = [number for number in dict.fromkeys(near) if self._words[number] != word]
        rows = [
            self._row(word, number, 2 * shared[number] / (self._sizes[number] + len(grams)), cosines)
            for number in chosen
        ]
        return [self._words[number] for number in chosen], np.array(rows).reshape(len(rows), _FEATURES)

    def _cosines(self, word: str) -> FloatArray | None:
        if self._vectors is None:
            return None
        if (vector := self._vectors.get(word)) is None:
            return np.zeros(len(self._words), np.float32)
        cosines: FloatArray = self._rows @ _unit(vector[None])[0]
        return cosines

    def _row(self, word: str, number: int, dice: float, cosines: FloatArray | None) -> list[float]:
        known = self._words[number]
        first = shared_beginning(word, known)
        last = shared_beginning(word[first:][::-1], known[first:][::-1])
        longest = max(len(word), len(known))
        cosine = float(cosines[number]) if cosines is not None else 0.0
        return [
            dice, first / longest, last / len(word), first / 10, len(known) / len(word),
            abs(len(known) - len(word)) / 5, self._counts[number], cosine, dice * cosine, cosine * cosine,
        ]  # fmt: skip


class Relatives:
    """Known words that may share translations with an unknown one.

    Args:
        likeness: similarity features of words.
        weights: weights of the features, and the intercept; see `learn_relatives`.
    """

    def __init__(self, likeness: Likeness, weights: Doubles) -> None:
        self._likeness, self._weights = likeness, weights
        # Both inflection and meaning look up every word.
        self.of = lru_cache(_REMEMBERED)(self._of)

    def _of(self, word: str) -> list[Relative]:
        """Return the relatives of a word, the best first."""
        words, rows = self._likeness.of(word)
        relative_weights = expected(rows, self._weights).tolist() if words else []
        relatives = [
            Relative(other, weight, shared_beginning(word, other) >= _GRAM)
            for other, weight in zip(words, relative_weights, strict=True)
        ]
        return sorted(relatives, key=lambda relative: (-relative.weight, relative.word))


def learn_relatives(entries: WordEntries, likeness: Likeness, taught: Sequence[str]) -> Relatives:
    """Learn which similarity features predict shared translations.

    Args:
        entries: known words.
        likeness: similarity features of words.
        taught: known words that are treated as unknown.
    """
    rows, shares = [], []
    for word in taught:
        others, features = likeness.of(word)
        own = {entry.target: entry.probability for entry in entries.lexical(word)}
        for other, row in zip(others, features, strict=True):
            common = (min(entry.probability, own.get(entry.target, 0.0)) for entry in entries.lexical(other))
            rows.append(row)
            shares.append(math.fsum(common))
    if not rows:
        return Relatives(likeness, np.zeros(_FEATURES + 1))
    return Relatives(likeness, regression(np.array(rows), np.array(shares)))


def shared_beginning(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    for index, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            return index
    return min(len(one), len(other))


def _grams(word: str) -> set[str]:
    """Return the character trigrams of a word with boundary marks."""
    marked = f"<{word}>"
    return {marked[start : start + _GRAM] for start in range(len(marked) - _GRAM + 1)}


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit_rows: FloatArray = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit_rows


class SharedTranslations:
    """Translations of relatives, as a source of evidence.

    Args:
        name: name of the column.
        entries: known words.
        relatives: relatives of unknown words.
        alike: whether to use relatives with the same beginning (other forms of the word), or the others (words used
            alike).
    """

    def __init__(self, name: str, entries: WordEntries, relatives: Relatives, alike: bool) -> None:
        self.name = name
        self._entries, self._relatives, self._alike = entries, relatives, alike

    def proposals(self, word: str) -> list[Proposal]:
        """Return the translations of the relatives, with their probabilities weighted by the relatives' weights."""
        weights: dict[str, float] = {}
        best: dict[str, tuple[float, WordEntry, str]] = {}
        for relative in [candidate for candidate in self._relatives.of(word) if candidate.alike == self._alike][
            :_HEARD
        ]:
            for entry in self._entries.lexical(relative.word):
                weight = relative.weight * entry.probability
                weights[entry.target] = weights.get(entry.target, 0.0) + weight
                if entry.target not in best or best[entry.target][0] < weight:
                    best[entry.target] = weight, entry, relative.word
        proposals = [
            Proposal(target, weight, entry.scores[0], (entry.scores[1], entry.scores[3]), origin)
            for target, weight in weights.items()
            for _, entry, origin in [best[target]]
        ]
        return sorted(proposals, key=lambda candidate: (-candidate.weight, candidate.target))[:MOST_TARGETS]


def regression(rows: Doubles, shares: Doubles) -> Doubles:
    """Fit a logistic regression by Newton's method, with a weak prior so that a solution always exists.

    Args:
        rows: features, shape (N, n).
        shares: expected value of each row, from 0 to 1, shape (N,).

    Returns:
        Shape (n + 1,): a weight for each feature, and the intercept.
    """
    mean, scale = rows.mean(0), rows.std(0)
    scale = np.where(scale > 0, scale, 1)
    x = np.column_stack([(rows - mean) / scale, np.ones(len(rows))])
    weights = np.zeros(x.shape[1])
    ridge = _PRIOR * len(rows) * np.diag([*np.ones(rows.shape[1]), 1e-3])
    for _ in range(_STEPS):
        predicted = _sigmoid(x @ weights)
        gradient = x.T @ (shares - predicted) - ridge @ weights
        curvature = (x * (predicted * (1 - predicted))[:, None]).T @ x + ridge
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    own = weights[:-1] / scale
    return np.append(own, weights[-1] - own @ mean)


def expected(rows: Doubles, weights: Doubles) -> Doubles:
    """Return the expected shares of N rows, shape (N,), given the weights of `regression`."""
    return _sigmoid(rows @ weights[:-1] + weights[-1])


def _sigmoid(values: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
