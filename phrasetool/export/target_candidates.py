"""Candidates: the target words that a source phrase may need, with the probability of each.

The probability of a word w, given that the phrase f is in a sentence, is taken to be the sum over the translations e of
f that have w in them,

    p(w|f) = sum over e with w in e of max(c(e, f) - 0.5, 0) / c(f)

What was extracted once is right less often than its relative frequency says; half a count is taken off each entry, as
in absolute discounting (Ney, Essen and Kneser 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phrasetool.disk.disk_columns import DiskColumn
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Phrases, prefix_sums

DISCOUNT = 0.5
# Groups that are looked at together; sums over several groups are made in these portions, whatever the blocks were.
_TOGETHER = 1 << 16


def discounted_frequencies(together: DoubleArray, alone: DoubleArray) -> DoubleArray:
    """max(c(e, f) - 0.5, 0) / c(f), element by element; NaN or infinite where a count is not known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: DoubleArray = np.maximum(together - DISCOUNT, 0) / alone
    return found


@dataclass(frozen=True)
class TargetCandidates:
    """The candidates of G source phrases.

    Attributes:
        sources: the phrases, in words of the table.
        weights: float64, shape (G,), how often each was seen.
        offsets: int64, shape (G + 1,), where the candidates of each begin.
        words: int32, shape (R,), the candidates; those of a phrase from the most probable to the least, and of equally
            probable ones that with the smallest number first.
        scores: float64, shape (R,), their probabilities.
    """

    sources: Phrases
    weights: DoubleArray
    offsets: Int64Array
    words: Int32Array
    scores: DoubleArray

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def groups(self) -> Int64Array:
        """int64, shape (R,), the source phrase of each candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


@exact_kernel
def _add_up(
    group_offsets: Int64Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    values: DoubleArray,
    last_entry: Int64Array,
    places: Int64Array,
    offsets: Int64Array,
    words: Int32Array,
    scores: DoubleArray,
) -> None:
    """The words of each group in the order of their occurrence, with the sums of the values of their entries.

    last_entry: for each word, the last entry it was seen in, -1 at first; places: where its sum stands.
    """
    count = 0
    for group in range(len(group_offsets) - 1):
        first = group_offsets[group]
        for entry in range(first, group_offsets[group + 1]):
            for k in range(target_offsets[entry], target_offsets[entry + 1]):
                word = target_words[k]
                if last_entry[word] == entry:
                    continue
                if last_entry[word] < first:
                    places[word] = count
                    words[count] = word
                    scores[count] = 0.0
                    count += 1
                last_entry[word] = entry
                scores[places[word]] += values[entry]
        offsets[group + 1] = count


def word_probabilities(
    sources: Phrases, weights: DoubleArray, group_offsets: Int64Array, targets: Phrases, values: DoubleArray,
    vocabulary: int, floor: float = 0.0,
) -> TargetCandidates:  # fmt: skip
    """The candidates of G source phrases.

    Args:
        sources: the phrases.
        weights: float64, shape (G,).
        group_offsets: int64, shape (G + 1,), where the N entries of each begin.
        targets: of the entries.
        values: float64, shape (N,), what each adds to the probabilities of its words.
        vocabulary: how many words there are.
        floor: candidates less probable are left out, and those of probability 0.

    Raises:
        ValueError: arrays of other shapes or types, or a word that is not in the vocabulary.
    """
    if len(sources) != len(group_offsets) - 1 or weights.shape != (len(sources),):
        raise ValueError(f"{len(sources)} sources, but {len(group_offsets) - 1} groups and {len(weights)} weights")
    if values.shape != (len(targets),) or values.dtype != np.float64 or group_offsets[-1] != len(targets):
        raise ValueError(f"expected a float64 for each of {len(targets)} entries, all in groups")
    if len(targets.words) and not 0 <= targets.words.min() <= targets.words.max() < vocabulary:
        raise ValueError("a word is not in the vocabulary")
    rows = len(targets.words)
    offsets, words, scores = np.zeros(len(sources) + 1, np.int64), np.empty(rows, np.int32), np.empty(rows)
    last, places = np.full(vocabulary, -1, np.int64), np.empty(vocabulary, np.int64)
    _add_up(group_offsets, targets.offsets, targets.words, values, last, places, offsets, words, scores)
    groups = np.repeat(np.arange(len(sources)), np.diff(offsets))
    words, scores = words[: offsets[-1]], scores[: offsets[-1]]
    kept = np.flatnonzero((scores >= floor) & (scores > 0))
    order = kept[np.lexsort((words[kept], -scores[kept], groups[kept]))]
    return TargetCandidates(sources, weights, offsets_of(groups[kept], len(sources)), words[order], scores[order])


def offsets_of(groups: Int64Array, count: int) -> Int64Array:
    """Where the rows of each of `count` groups begin, given the group of each row, in ascending order."""
    offsets = prefix_sums(np.bincount(groups, minlength=count))
    return offsets


class CandidateStore:
    """Candidates on disk, in the order in which they came; memory does not grow with them.

    Args:
        folder: in which the files are made; None for the system's folder of temporary files.

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None) -> None:
        # Of a source phrase its words, its candidates and its weight; of a candidate its number and its probability.
        self._groups = DiskColumn(folder, np.float64, 3)
        self._sources = DiskColumn(folder, np.int32)
        self._rows = DiskColumn(folder, np.float64, 2)

    def __len__(self) -> int:
        return len(self._groups)

    def append(self, found: TargetCandidates) -> None:
        """Write the candidates of more source phrases behind the others."""
        sizes = found.sources.lengths, np.diff(found.offsets), found.weights
        self._groups.append(np.stack(sizes, axis=1).astype(np.float64))
        self._sources.append(found.sources.words)
        self._rows.append(np.stack([found.words.astype(np.float64), found.scores], axis=1))

    def pieces(self) -> Iterator[TargetCandidates]:
        """All candidates, those of some ten thousand source phrases at a time."""
        word = row = 0
        for first in range(0, len(self), _TOGETHER):
            groups = self._groups.read(first, first + _TOGETHER)
            ends, offsets = (prefix_sums(groups[:, side].astype(np.int64)) for side in (0, 1))
            sources = Phrases(ends, self._sources.read(word, word + int(ends[-1])))
            rows = self._rows.read(row, row + int(offsets[-1]))
            weights, scores = (np.ascontiguousarray(values) for values in (groups[:, 2], rows[:, 1]))
            yield TargetCandidates(sources, weights, offsets, rows[:, 0].astype(np.int32), scores)
            word, row = word + int(ends[-1]), row + int(offsets[-1])
