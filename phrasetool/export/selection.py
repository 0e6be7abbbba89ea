"""Which candidates of a source phrase are written.

A decoder unites the candidates of all phrases that it finds in a sentence.  So what a word of a phrase brings already,
and what is always among the candidates, would only take a place in the list of the phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from phrasetool.export.target_candidates import TargetCandidates, offsets_of
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import DoubleArray, Int32Array, Int64Array, Mask, Phrases, prefix_sums


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
        """What is written of each piece; a source phrase may be left without candidates."""
        for found in pieces:
            marks = np.full(self.vocabulary, -1, np.int64)
            marks[self.always] = len(found)
            kept = np.zeros(len(found.words), np.bool_)
            # What `learn` has not finished does not count yet.
            known = bool(len(self._listed))
            starts, ends = (self._starts, self._ends) if known else np.zeros((2, 0), np.int64)
            _keep(
                found.sources.offsets, found.sources.words, found.offsets, found.words, self.most, marks,
                starts, ends, self._listed, kept,
            )  # fmt: skip
            offsets = offsets_of(found.groups[kept], len(found))
            yield TargetCandidates(found.sources, found.weights, offsets, found.words[kept], found.scores[kept])


def _of_one_word(found: TargetCandidates) -> TargetCandidates:
    """The source phrases of a single word alone."""
    chosen = np.flatnonzero(found.sources.lengths == 1)
    rows = np.flatnonzero(found.sources.lengths[found.groups] == 1)
    offsets = prefix_sums(np.diff(found.offsets)[chosen])
    sources = found.sources.select(chosen)
    return TargetCandidates(sources, found.weights[chosen], offsets, found.words[rows], found.scores[rows])


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
