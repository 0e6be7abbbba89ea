"""Candidates: the target words, or units, that a source phrase or unit may need, with the probability of each.

The probability of a word w, given that the phrase f is in a sentence, is taken to be the sum over the translations e of
f that have w in them,

    p(w|f) = sum over e with w in e of max(c(e, f) - 0.5, 0) / c(f)

Entries that were extracted once are right less often than their relative frequency suggests; half a count is taken off
each entry, as in absolute discounting (Ney, Essen and Kneser 1994).  Of a source unit u it is

    p(w|u) = sum over f with u in f of c(f) p(w|f)  /  sum over f with u in f of c(f)

over the single words f; of words that are units themselves it is p(w|f).  A decoder unites the candidates of all
phrases that it matches in a sentence.  Therefore the selection leaves out of a phrase's list the candidates that one of
its words brings already, and those that are always among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from phrasetool.disk.columns import DiskColumn
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask, Phrases, gathered_runs, prefix_sums

DISCOUNT = 0.5
# Groups that are looked at together; sums over several groups are made in these portions, whatever the blocks were.
_TOGETHER = 1 << 16
# Pairs of units that wait to be added up.
_WAITING = 1 << 24


def discounted_frequencies(together: DoubleArray, alone: DoubleArray) -> DoubleArray:
    """max(c(e, f) - 0.5, 0) / c(f), element by element; NaN or infinite where a count is not known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        discounted: DoubleArray = np.maximum(together - DISCOUNT, 0) / alone
    return discounted


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


class _Sums:
    """Sums of numbers by key; added in the order in which they come."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64Array, DoubleArray]] = []
        self._waiting = 0

    def add(self, keys: Int64Array, numbers: DoubleArray) -> None:
        self._parts.append((keys, numbers))
        self._waiting += len(keys)
        if self._waiting > _WAITING:
            self._parts, self._waiting = [self.all()], 0

    def all(self) -> tuple[Int64Array, DoubleArray]:
        """Keys in ascending order, and their sums."""
        keys = np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in self._parts)])
        numbers = np.concatenate([np.zeros(0), *(numbers for _, numbers in self._parts)])
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, np.bincount(places, numbers, len(distinct)).astype(np.float64)


def unit_candidates(
    pieces: Iterable[TargetCandidates], units_of: Callable[[Phrases], Phrases], vocabulary: int, floor: float
) -> TargetCandidates:
    """The candidates of all source units that occur in single words, in the order of their numbers.

    Args:
        pieces: candidates of phrases.
        units_of: the units of each phrase, each once.
        vocabulary: how many target units there are.
        floor: what is less probable is left out.
    """
    pairs, weights = _Sums(), _Sums()
    for found in pieces:
        rows = np.flatnonzero(found.sources.lengths == 1)
        units = units_of(found.sources.select(rows))
        owners = np.repeat(rows, units.lengths)
        weights.add(units.words.astype(np.int64), found.weights[owners])
        counts = np.diff(found.offsets)[owners]
        _, places = gathered_runs(found.offsets[:-1][owners], counts)
        keys = np.repeat(units.words.astype(np.int64), counts) * vocabulary + found.words[places]
        pairs.add(keys, found.scores[places] * np.repeat(found.weights[owners], counts))
    known, seen = weights.all()
    keys, sums = pairs.all()
    groups = np.searchsorted(known, keys // max(1, vocabulary))
    scores, words = sums / seen[groups], (keys % max(1, vocabulary)).astype(np.int32)
    kept = np.flatnonzero(scores >= floor)
    order = kept[np.lexsort((words[kept], -scores[kept], groups[kept]))]
    sources = Phrases(np.arange(len(known) + 1), known.astype(np.int32))
    return TargetCandidates(sources, seen, offsets_of(groups[order], len(known)), words[order], scores[order])


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
    """Mark the rows to keep.  marks: for each target word the last group that it is not wanted in, -1 if none, or a
    number beyond all groups."""
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
    """Selects candidates.

    Attributes:
        most: candidates of a source phrase.
        always: int32, words that are candidates of everything.
        vocabulary: how many target words there are.
    """

    most: int
    always: Int32Array
    vocabulary: int
    _starts: Int64Array = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _ends: Int64Array = field(init=False, default_factory=lambda: np.zeros(0, np.int64))
    _listed: Int32Array = field(init=False, default_factory=lambda: np.zeros(0, np.int32))

    def learn(self, pieces: Iterable[TargetCandidates], sources: int) -> None:
        """Hold the candidates of single words in memory, to leave them out of those of longer phrases.

        Args:
            pieces: all candidates.
            sources: how many source words there are.
        """
        self._starts, self._ends = np.zeros((2, sources), np.int64)
        parts, done = [self._listed], 0
        for found in self.select(part for part in map(_of_one_word, pieces)):
            words = found.sources.words
            self._starts[words], self._ends[words] = done + found.offsets[:-1], done + found.offsets[1:]
            parts.append(found.words)
            done += len(found.words)
        self._listed = np.concatenate(parts)

    def select(self, pieces: Iterable[TargetCandidates]) -> Iterator[TargetCandidates]:
        """Yield the selected candidates of each piece; a source phrase may be left without candidates."""
        for candidates in pieces:
            marks = np.full(self.vocabulary, -1, np.int64)
            marks[self.always] = len(candidates)
            kept = np.zeros(len(candidates.words), np.bool_)
            # What `learn` has not finished does not count yet.
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
    """The source phrases of a single word alone."""
    chosen = np.flatnonzero(candidates.sources.lengths == 1)
    rows = np.flatnonzero(candidates.sources.lengths[candidates.groups] == 1)
    offsets = prefix_sums(np.diff(candidates.offsets)[chosen])
    sources = candidates.sources.select(chosen)
    return TargetCandidates(
        sources, candidates.weights[chosen], offsets, candidates.words[rows], candidates.scores[rows]
    )


def most_frequent(frequencies: DoubleArray, count: int) -> Int32Array:
    """The most frequent words, the most frequent first; of equally frequent ones that with the smallest number.

    Args:
        frequencies: float64, shape (V,); 0 is a word that was never seen, and is not taken.
        count: how many at most.
    """
    seen = np.flatnonzero(frequencies > 0)
    order = np.lexsort((seen, -frequencies[seen]))[:count]
    return seen[order].astype(np.int32)


def as_phrases(found: TargetCandidates) -> Phrases:
    """The candidates of each source as a phrase."""
    return Phrases(found.offsets, found.words)
