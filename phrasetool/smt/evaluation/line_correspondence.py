"""Permutation test on words of whether the lines of a reference correspond to the lines of a source text.

A system offers words for each source line.  If line i of the reference is the translation of source line i, it shares
more words with those offered for line i than with those offered for other lines, whatever the weights of the system
are and however short the text is; if the reference is unrelated, every permutation of its lines is equally likely.  No
n-gram has to match, and words that are offered for every line (punctuation, articles) do not count.

Measured with the 3 best entries of each source phrase of a Moses table (Multi30k German-English): 200 random samples of
10 lines of a correct reference were all accepted, from the table's own texts and from another domain (short sentences
of Tatoeba, 79 % of whose tokens the table knows); with three in ten of the table's target words, 1.5 % were rejected.
Unrelated references are accepted with probability `ERROR_RATE`, whatever the number of lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.unique_phrases import number_distinct

# Probability that a reference whose lines are in random order is accepted.
ERROR_RATE = 0.01
_PERMUTATIONS = 999
# Maximum number of lines tested, spread evenly over longer texts; the test needs a square matrix of this size.
_MOST_LINES = 500
# Fewer distinct source lines have too few permutations for any order to be unlikely.
_LEAST_DISTINCT = 6
# Shifts of a reference that are tried, in lines, and the factor by which it must fit better.
_MOVES = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
_CLEARLY = 2.0


@dataclass(frozen=True)
class Correspondence:
    """Correspondence between the lines of a reference and those of a source text.

    Attributes:
        p_value: the probability of so many shared words if the lines of the reference were in random order; 1 if no
            word is shared, NaN if the source has too few distinct lines for the test.
        share: shared words beyond those expected by chance, per token of the reference.
        moved: number of lines by which the reference must be moved down to fit clearly better; 0 if it fits unmoved.
    """

    p_value: float
    share: float
    moved: int

    @property
    def rejected(self) -> bool:
        """Whether the test finds that the lines do not correspond."""
        return self.moved != 0 or self.p_value > ERROR_RATE


def line_correspondence(offered: Phrases, reference: Phrases) -> Correspondence:
    """Test whether the lines of a reference correspond to the lines of a source text.

    Args:
        offered: for each of S source lines, words that a translation of it may have; order and duplicates are ignored.
        reference: S lines, in the same ids; negative ids match nothing.

    Raises:
        ValueError: the numbers of lines differ, or there are no lines.
    """
    lines = len(offered)
    if lines != len(reference) or not lines:
        raise ValueError(f"expected a reference of {lines} lines, and at least one, got {len(reference)}")
    words = 1 + max(int(side.words.max(initial=0)) for side in (offered, reference))
    pairs, others = (_distinct_pairs(side, words) for side in (offered, reference))
    frequency = np.bincount(pairs % words, minlength=words)
    # A word that is offered for every line is no evidence for any line.
    weights = np.log(lines / np.maximum(frequency, 1))
    shared = np.intersect1d(pairs, others, assume_unique=True)
    by_chance = float((frequency * np.bincount(others % words, minlength=words)).sum()) / lines
    share = (len(shared) - by_chance) / max(len(reference.words), 1)
    chosen = np.unique(np.linspace(0, lines - 1, min(lines, _MOST_LINES)).astype(np.int64))
    if len(shared) and len(number_distinct(offered.select(chosen))[1]) < _LEAST_DISTINCT:
        return Correspondence(float("nan"), share, 0)
    p_value, by_luck = _p_value(chosen, pairs, others, weights)
    fit = _weight(pairs, others, weights, 0)
    best, moved = max((_weight(pairs, others, weights, move), move) for move in _MOVES)
    is_moved = best > _CLEARLY * fit and best > by_luck * lines
    return Correspondence(p_value, share, moved if is_moved else 0)


def _distinct_pairs(lines: Phrases, words: int) -> Int64Array:
    """Return the distinct pairs of a line and one of its words, as line * words + word, ascending."""
    numbers = np.repeat(np.arange(len(lines)), lines.lengths)
    known = lines.words >= 0
    return np.unique(numbers[known] * words + lines.words[known])


def _weight(pairs: Int64Array, others: Int64Array, weights: DoubleArray, move: int) -> float:
    """Return the weight of the words that lines share with the reference lines moved down by `move` lines."""
    shared = np.intersect1d(pairs, others + move * len(weights), assume_unique=True)
    return float(weights[shared % len(weights)].sum())


def _p_value(chosen: Int64Array, pairs: Int64Array, others: Int64Array, weights: DoubleArray) -> tuple[float, float]:
    """Return the share of orders of the reference lines, random ones and the actual one, that fit at least as well.

    The second value is the highest weight per line of the shared words over the random orders.
    """
    columns = np.intersect1d(pairs % len(weights), others % len(weights))
    columns = columns[weights[columns] > 0]
    left, right = (_matrix(side, chosen, columns, len(weights)) for side in (pairs, others))
    fit = (left * weights[columns]) @ right.T
    rows = np.arange(len(chosen))
    rng = np.random.default_rng(0)
    shuffled = np.array([fit[rows, rng.permutation(len(rows))].sum() for _ in range(_PERMUTATIONS)])
    # The tolerance makes sums equal whose terms were only added in a different order.
    as_good = int((shuffled >= fit.trace() * (1 - 1e-9)).sum())
    return (1 + as_good) / (1 + _PERMUTATIONS), float(shuffled.max()) / len(rows)


def _matrix(pairs: Int64Array, lines: Int64Array, columns: Int64Array, words: int) -> npt.NDArray[np.float64]:
    """Return a matrix, float64, shape (lines, columns): 1 where a line has the word of a column, 0 elsewhere."""
    matrix = np.zeros((len(lines), len(columns)))
    if len(columns):
        row = np.searchsorted(lines, pairs // words)
        column = np.searchsorted(columns, pairs % words)
        inside = (row < len(lines)) & (column < len(columns))
        pairs, row, column = pairs[inside], row[inside], column[inside]
        present = (lines[row] == pairs // words) & (columns[column] == pairs % words)
        matrix[row[present], column[present]] = 1
    return matrix
