"""Candidates: the target words or units that may translate a source phrase or unit, with their probabilities.

The probability of a target word w, given that the phrase f occurs in a sentence, is estimated as the sum over the
translations e of f that contain w,

    p(w|f) = sum over e with w in e of max(c(e, f) - 0.5, 0) / c(f)

Entries that were extracted once are correct less often than their relative frequency suggests; half a count is
subtracted from each entry, as in absolute discounting (Ney, Essen and Kneser 1994).  For a source unit u,

    p(w|u) = sum over f with u in f of c(f) p(w|f)  /  sum over f with u in f of c(f)

over the single words f; if the units are words, this is p(w|f).  A decoder uses the union of the candidates of all
phrases that it matches in a sentence.  Therefore the selection leaves out of a phrase's list the candidates that one of
its words already contributes, and those that are candidates everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from phrasetool.disk.columns import DiskColumn
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask, Phrases, gathered_runs, prefix_sums

DISCOUNT = 0.5
# Groups read together; sums over groups are computed in chunks of this size, however the candidates were appended.
_GROUPS_PER_CHUNK = 1 << 16
# Pairs of units buffered before they are summed.
_MAX_BUFFERED = 1 << 24


def discounted_frequencies(together: DoubleArray, alone: DoubleArray) -> DoubleArray:
    """Return max(c(e, f) - 0.5, 0) / c(f) for each element; NaN or infinite where a count is unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        discounted: DoubleArray = np.maximum(together - DISCOUNT, 0) / alone
    return discounted


@dataclass(frozen=True)
class TargetCandidates:
    """The candidates of G source phrases.

    Attributes:
        sources: the phrases, in words of the table.
        weights: float64, shape (G,), the count of each phrase.
        offsets: int64, shape (G + 1,), the start of the candidates of each phrase.
        words: int32, shape (R,), the candidates; those of a phrase in descending order of probability, and with equal
            probabilities in ascending order.
        scores: float64, shape (R,), the probability of each candidate.
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
        """Index of the source phrase of each candidate: int64, shape (R,)."""
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
    """Sum, for each word of a group, the values of its entries; words are in order of first occurrence.

    last_entry: for each word, the last entry that contains it, initially -1; places: the index of its sum.
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
    """Return the candidates of G source phrases.

    Args:
        sources: the phrases.
        weights: float64, shape (G,).
        group_offsets: int64, shape (G + 1,), the start of the entries of each phrase; N entries in total.
        targets: target phrases of the entries.
        values: float64, shape (N,), the contribution of each entry to the probabilities of its words.
        vocabulary: number of target words.
        floor: minimum probability; candidates of probability 0 are always left out.

    Raises:
        ValueError: an array has the wrong shape or type, or a word is not in the vocabulary.
    """
    if len(sources) != len(group_offsets) - 1 or weights.shape != (len(sources),):
        raise ValueError(f"{len(sources)} sources, but {len(group_offsets) - 1} groups and {len(weights)} weights")
    if values.shape != (len(targets),) or values.dtype != np.float64 or group_offsets[-1] != len(targets):
        raise ValueError(f"expected a float64 for each of {len(targets)} entries, all in groups")
    if len(targets.words) and not 0 <= targets.words.min() <= targets.words.max() < vocabulary:
        raise ValueError("a word is not in the vocabulary")
    rows = len(targets.words)
    offsets, words, scores = np.zeros(len(sources) + 1, np.int64), np.empty(rows, np.int32), np.empty(rows)
    last, positions = np.full(vocabulary, -1, np.int64), np.empty(vocabulary, np.int64)
    _add_up(group_offsets, targets.offsets, targets.words, values, last, positions, offsets, words, scores)
    groups = np.repeat(np.arange(len(sources)), np.diff(offsets))
    words, scores = words[: offsets[-1]], scores[: offsets[-1]]
    kept = np.flatnonzero((scores >= floor) & (scores > 0))
    order = kept[np.lexsort((words[kept], -scores[kept], groups[kept]))]
    return TargetCandidates(sources, weights, offsets_of(groups[kept], len(sources)), words[order], scores[order])


def offsets_of(groups: Int64Array, count: int) -> Int64Array:
    """Return the start of the rows of each of `count` groups, from the group of each row in ascending order."""
    offsets = prefix_sums(np.bincount(groups, minlength=count))
    return offsets


class CandidateStore:
    """Candidates on disk, in the order in which they were appended; memory use does not grow with their number.

    Args:
        folder: folder for the files; None for the system's temporary folder.

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    def __init__(self, folder: str | None) -> None:
        # Per source phrase: number of words, number of candidates, weight.  Per candidate: target word, probability.
        self._groups = DiskColumn(folder, np.float64, 3)
        self._sources = DiskColumn(folder, np.int32)
        self._rows = DiskColumn(folder, np.float64, 2)

    def __len__(self) -> int:
        return len(self._groups)

    def append(self, more: TargetCandidates) -> None:
        """Append the candidates of more source phrases."""
        sizes = more.sources.lengths, np.diff(more.offsets), more.weights
        self._groups.append(np.stack(sizes, axis=1).astype(np.float64))
        self._sources.append(more.sources.words)
        self._rows.append(np.stack([more.words.astype(np.float64), more.scores], axis=1))

    def pieces(self) -> Iterator[TargetCandidates]:
        """Yield all candidates, those of 65,536 source phrases at a time."""
        word = row = 0
        for first in range(0, len(self), _GROUPS_PER_CHUNK):
            groups = self._groups.read(first, first + _GROUPS_PER_CHUNK)
            ends, offsets = (prefix_sums(groups[:, side].astype(np.int64)) for side in (0, 1))
            sources = Phrases(ends, self._sources.read(word, word + int(ends[-1])))
            rows = self._rows.read(row, row + int(offsets[-1]))
            weights, scores = (np.ascontiguousarray(values) for values in (groups[:, 2], rows[:, 1]))
            yield TargetCandidates(sources, weights, offsets, rows[:, 0].astype(np.int32), scores)
            word, row = word + int(ends[-1]), row + int(offsets[-1])


class _Sums:
    """Sums of numbers by key, added in the order in which they arrive."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64Array, DoubleArray]] = []
        self._waiting = 0

    def add(self, keys: Int64Array, numbers: DoubleArray) -> None:
        self._parts.append((keys, numbers))
        self._waiting += len(keys)
        if self._waiting > _MAX_BUFFERED:
            self._parts, self._waiting = [self.all()], 0

    def all(self) -> tuple[Int64Array, DoubleArray]:
        """Return the keys in ascending order, and their sums."""
        keys = np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in self._parts)])
        numbers = np.concatenate([np.zeros(0), *(numbers for _, numbers in self._parts)])
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, np.bincount(inverse, numbers, len(distinct)).astype(np.float64)


def unit_candidates(
    pieces: Iterable[TargetCandidates], units_of: Callable[[Phrases], Phrases], vocabulary: int, floor: float
) -> TargetCandidates:
    """Return the candidates of all source units that occur in single-word phrases, in ascending order of the units.

    Args:
        pieces: candidates of phrases.
        units_of: returns the distinct units of each phrase.
        vocabulary: number of target units.
        floor: minimum probability.
    """
    pairs, weights = _Sums(), _Sums()
    for candidates in pieces:
        rows = np.flatnonzero(candidates.sources.lengths == 1)
        units = units_of(candidates.sources.select(rows))
        owners = np.repeat(rows, units.lengths)
        weights.add(units.words.astype(np.int64), candidates.weights[owners])
        counts = np.diff(candidates.offsets)[owners]
        _, rows_of_candidates = gathered_runs(candidates.offsets[:-1][owners], counts)
        keys = np.repeat(units.words.astype(np.int64), counts) * vocabulary + candidates.words[rows_of_candidates]
        pairs.add(keys, candidates.scores[rows_of_candidates] * np.repeat(candidates.weights[owners], counts))
    known, unit_weights = weights.all()
    keys, sums = pairs.all()
    groups = np.searchsorted(known, keys // max(1, vocabulary))
    scores, words = sums / unit_weights[groups], (keys % max(1, vocabulary)).astype(np.int32)
    kept = np.flatnonzero(scores >= floor)
    order = kept[np.lexsort((words[kept], -scores[kept], groups[kept]))]
    sources = Phrases(np.arange(len(known) + 1), known.astype(np.int32))
    return TargetCandidates(sources, unit_weights, offsets_of(groups[order], len(known)), words[order], scores[order])


@exact_kernel
def _keep(
    source_offsets: Int64Array,
    source_words: Int32Array,
    offsets: Int64Array,
    words: Int32Array,
    most: int,
    marks: Int64Array,
    list_starts: Int64Array,
    list_ends: Int64Array,
    listed: Int32Array,
    kept: Mask,
) -> None:
    """Mark the rows to keep.  marks: for each target word, the last group that it is left out of, -1 if none, or a
    number beyond all groups if it is left out of every group."""
    groups = len(offsets) - 1
    for group in range(groups):
        if source_offsets[group + 1] - source_offsets[group] > 1:
            for i in range(source_offsets[group], source_offsets[group + 1]):
                source = source_words[i]
                if source < len(list_starts):
                    for k in range(list_starts[source], list_ends[source]):
                        if marks[listed[k]] < groups:
                            marks[listed[k]] = group
        count = 0
        for row in range(offsets[group], offsets[group + 1]):
            if count == most:
                break
            mark = marks[words[row]]
            if mark != group and mark < groups:
                kept[row] = True
                count += 1


@dataclass
class Selector:
    """Selection of candidates.

    Attributes:
        most: maximum number of candidates of a source phrase.
        always: int32, words that are candidates of every phrase.
        vocabulary: number of target words.
    """

    most: int
    always: Int32Array
    vocabulary: int
    _starts: Int64Array = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _ends: Int64Array = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _listed: Int32Array = field(init=False, default_factory=lambda: np.zeros(0, np.int32))

    def learn(self, pieces: Iterable[TargetCandidates], sources: int) -> None:
        """Hold the candidates of single words in memory, to leave them out of the lists of longer phrases.

        Args:
            pieces: all candidates.
            sources: number of source words.
        """
        self._starts, self._ends = np.zeros((2, sources), np.int64)
        parts, listed = [self._listed], 0
        for candidates in self.select(part for part in map(_of_one_word, pieces)):
            words = candidates.sources.words
            self._starts[words], self._ends[words] = listed + candidates.offsets[:-1], listed + candidates.offsets[1:]
            parts.append(candidates.words)
            listed += len(candidates.words)
        self._listed = np.concatenate(parts)

    def select(self, pieces: Iterable[TargetCandidates]) -> Iterator[TargetCandidates]:
        """Yield the selected candidates of each piece; a source phrase may end up without candidates."""
        for candidates in pieces:
            marks = np.full(self.vocabulary, -1, np.int64)
            marks[self.always] = len(candidates)
            kept = np.zeros(len(candidates.words), np.bool_)
            # The lists are ignored until `learn` has finished.
            known = bool(len(self._listed))
            starts, ends = (self._starts, self._ends) if known else np.zeros((2, 0), np.int64)
            _keep(
                candidates.sources.offsets, candidates.sources.words, candidates.offsets, candidates.words,
                self.most, marks, starts, ends, self._listed, kept,
            )  # fmt: skip
            offsets = offsets_of(candidates.groups[kept], len(candidates))
            yield TargetCandidates(
                candidates.sources, candidates.weights, offsets, candidates.words[kept], candidates.scores[kept]
            )


def _of_one_word(candidates: TargetCandidates) -> TargetCandidates:
    """Return the candidates of the single-word source phrases only."""
    chosen = np.flatnonzero(candidates.sources.lengths == 1)
    rows = np.flatnonzero(candidates.sources.lengths[candidates.groups] == 1)
    offsets = prefix_sums(np.diff(candidates.offsets)[chosen])
    sources = candidates.sources.select(chosen)
    return TargetCandidates(
        sources, candidates.weights[chosen], offsets, candidates.words[rows], candidates.scores[rows]
    )


def most_frequent(frequencies: DoubleArray, count: int) -> Int32Array:
    """Return the most frequent words in descending order of frequency; ties in ascending order of their numbers.

    Args:
        frequencies: float64, shape (V,); words of frequency 0 are left out.
        count: maximum number of words.
    """
    occurring = np.flatnonzero(frequencies > 0)
    order = np.lexsort((occurring, -frequencies[occurring]))[:count]
    return occurring[order].astype(np.int32)


def as_phrases(candidates: TargetCandidates) -> Phrases:
    """Return the candidates of each source phrase as a phrase."""
    return Phrases(candidates.offsets, candidates.words)
