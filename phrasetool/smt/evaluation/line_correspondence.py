"""Whether the lines of a reference belong to the lines of a source text: a permutation test on words.

A system offers words for each source line.  If line i of the reference is the translation of line i, it shares more of
these words with it than with the other lines, whatever the weights of the system are and however short the text is; if
the reference is unrelated, every permutation of its lines is as likely.  No n-gram has to match, and words that are
offered for every line (punctuation, articles) count nothing.

Measured with the 3 best entries of each source phrase of a Moses table (Multi30k German-English): 200 random samples of
10 lines of a right reference were all accepted, of the table's own texts and of another domain (short sentences of
Tatoeba, 79 % of whose tokens the table knows); with three in ten of the table's target words 1.5 % were refused.
Unrelated references are accepted with probability `ERROR_RATE`, whatever the number of lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.unique_phrases import number_distinct

# The probability that a reference is accepted whose lines stand in random order.
ERROR_RATE = 0.01
_PERMUTATIONS = 999
# Lines that are looked at, spread evenly over longer texts: a matrix of as many rows and columns is made of them.
_MOST_LINES = 500
# Fewer distinct source lines have so few permutations that no order is unlikely.
_LEAST_DISTINCT = 6
# Lines by which a reference may be moved, and how much better it has to fit then.
_MOVES = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
_CLEARLY = 2.0


@dataclass(frozen=True)
class Correspondence:
    """How well the lines of a reference fit those of a source text.

    Attributes:
        p_value: the probability of so many shared words if the lines of the reference stood in random order; 1 if no
            word is shared, NaN if the source has too few distinct lines to tell.
        share: shared words beyond those expected by chance, per token of the reference.
        moved: lines by which the reference fits clearly better when it is moved down; 0 if it fits best as it is.
    """

    p_value: float
    share: float
    moved: int

    @property
    def rejected(self) -> bool:
        """Whether the lines do not belong together, as far as can be told."""
        return self.moved != 0 or self.p_value > ERROR_RATE


def line_correspondence(offered: Phrases, reference: Phrases) -> Correspondence:
    """Test whether the lines of a reference belong to the lines of a source text.

    Args:
        offered: for each of S source lines, words that a translation of it may have; order and repetitions are ignored.
        reference: S lines, in the same ids; negative ids equal nothing.

    Raises:
        ValueError: the two have different numbers of lines.
    """
    lines = len(offered)
    if lines != len(reference) or not lines:
        raise ValueError(f"expected a reference of {lines} lines, and at least one, got {len(reference)}")
    words = 1 + max(int(side.words.max(initial=0)) for side in (offered, reference))
    pairs, others = (_distinct_pairs(side, words) for side in (offered, reference))
    frequency = np.bincount(pairs % words, minlength=words)
    # A word that is offered for every line tells nothing of one of them.
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
    """The distinct pairs of a line and one of its words, as line * words + word, ascending."""
    numbers = np.repeat(np.arange(len(lines)), lines.lengths)
    known = lines.words >= 0
    return np.unique(numbers[known] * words + lines.words[known])


def _weight(pairs: Int64Array, others: Int64Array, weights: DoubleArray, move: int) -> float:
    """The weight of the words that lines share with the reference lines moved down by `move` lines."""
    shared = np.intersect1d(pairs, others + move * len(weights), assume_unique=True)
    return float(weights[shared % len(weights)].sum())


def _p_value(chosen: Int64Array, pairs: Int64Array, others: Int64Array, weights: DoubleArray) -> tuple[float, float]:
    """The share of random orders of the reference lines in which they share as much, the one of the file included.

    Also the highest weight of the words that they share in random orders, per line.
    """
    columns = np.intersect1d(pairs % len(weights), others % len(weights))
    columns = columns[weights[columns] > 0]
    left, right = (_matrix(side, chosen, columns, len(weights)) for side in (pairs, others))
    fit = (left * weights[columns]) @ right.T
    rows = np.arange(len(chosen))
    rng = np.random.default_rng(0)
    shuffled = np.array([fit[rows, rng.permutation(len(rows))].sum() for _ in range(_PERMUTATIONS)])
    # Equal sums are equal although their terms were added in another order.
    as_good = int((shuffled >= fit.trace() * (1 - 1e-9)).sum())
    return (1 + as_good) / (1 + _PERMUTATIONS), float(shuffled.max()) / len(rows)


def _matrix(pairs: Int64Array, lines: Int64Array, columns: Int64Array, words: int) -> npt.NDArray[np.float64]:
    """float64, shape (lines, columns): 1 where a line has the word of a column, 0 elsewhere."""
    matrix = np.zeros((len(lines), len(columns)))
    if len(columns):
        row = np.searchsorted(lines, pairs // words)
        column = np.searchsorted(columns, pairs % words)
        inside = (row < len(lines)) & (column < len(columns))
        pairs, row, column = pairs[inside], row[inside], column[inside]
        present = (lines[row] == pairs // words) & (columns[column] == pairs % words)
        matrix[row[present], column[present]] = 1
    return matrix
