"""Ragged arrays of phrases, and a block of phrase-table entries.

A phrase is a sequence of word ids.  Many phrases are stored in two arrays, the concatenated ids `words` and the start
positions `offsets`, so that phrase i is `words[offsets[i]:offsets[i + 1]]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]


def prefix_sums(counts: npt.ArrayLike) -> Int64Array:
    """Return the sums of the first 0, 1, .. N counts: the offsets of a ragged array with these lengths.

    Args:
        counts: N integers or booleans.

    Returns:
        int64, shape (N + 1,).
    """
    values = np.asarray(counts)
    sums = np.zeros(len(values) + 1, np.int64)
    # An empty list becomes a float array, which `cumsum` cannot write to integers.
    if len(values):
        np.cumsum(values, out=sums[1:])
    return sums


def gathered_runs(starts: Int64Array, lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the offsets and the item indices of concatenated runs of items.

    Args:
        starts: int64, shape (N,), index of the first item of each run.
        lengths: int64, shape (N,), number of items of each run.

    Returns:
        int64, shape (N + 1,), the offsets of the gathered runs; int64, the index of each gathered item.
    """
    offsets = prefix_sums(lengths)
    indices: Int64Array = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return offsets, indices


@dataclass(frozen=True)
class Phrases:
    """A ragged array of phrases.

    Attributes:
        offsets: int64, shape (N + 1,), ascending, `offsets[0] == 0`.
        words: int32, shape (offsets[N],), word ids; 0 is the unknown word.
    """

    offsets: Int64Array
    words: Int32Array

    @classmethod
    def from_lists(cls, phrases: Sequence[Sequence[int]]) -> Phrases:
        """Return the phrases of a list of lists of word ids."""
        offsets = prefix_sums([len(phrase) for phrase in phrases])
        words = np.fromiter((word for phrase in phrases for word in phrase), np.int32, offsets[-1])
        return cls(offsets, words)

    @classmethod
    def concatenate(cls, parts: Sequence[Phrases]) -> Phrases:
        """Return all phrases of the parts, in order; `parts` may be empty."""
        lengths = np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])
        return cls(prefix_sums(lengths), np.concatenate([np.zeros(0, np.int32), *(part.words for part in parts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Int32Array:
        return self.words[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[Int32Array]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> Int64Array:
        """Number of words per phrase, int64, shape (N,)."""
        return np.diff(self.offsets)

    def select(self, index: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Phrases:
        """Return the phrases at `index` (integers, or a mask of shape (N,)), in that order."""
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index
        offsets, indices = gathered_runs(self.offsets[:-1][index], self.lengths[index])
        return Phrases(offsets, self.words[indices])

    def part(self, first: int, last: int) -> Phrases:
        """Return the phrases in [first, last); their words are a view."""
        offsets = self.offsets[first : last + 1]
        return Phrases(offsets - offsets[0], self.words[offsets[0] : offsets[-1]])

    def padded(self, length: int, fill: int = 0) -> Int32Array:
        """Return the phrases as a matrix, int32, shape (N, length), padded with `fill`.

        Raises:
            ValueError: a phrase is longer than `length`.
        """
        lengths = self.lengths
        if len(self) and lengths.max() > length:
            raise ValueError(f"a phrase has {lengths.max()} words, more than {length}")
        matrix = np.full((len(self), length), fill, np.int32)
        matrix[np.arange(length) < lengths[:, None]] = self.words
        return matrix


@dataclass
class EntryBlock:
    """Consecutive phrase-table entries whose first and last source groups are complete.

    An entry is a line of a table.  A malformed line is also an entry, with `malformed` set: it keeps its position, has
    no similarity and is never removed by a rule.

    Attributes:
        first_entry: 0-based number of the block's first entry in its table.
        text: the bytes of the block, uint8, exactly as read.
        line_offsets: int64, shape (N + 1,), the start of each entry's line; a line includes its line feed.
        source_ends, target_ends: int64, shape (N,), positions of the first two `|||` of an entry, -1 where missing.
        score_ends: int64, shape (N,), the byte after an entry's last score.
        group_offsets: int64, shape (G + 1,), the first entry of each source group.
        source_lengths: int64, shape (G,), number of words of each source, known or unknown.
        sources: the G source phrases (without words if the block was read without a vocabulary).
        targets: the N target phrases.
        malformed: bool, shape (N,).
        columns: float64, shape (N, C), the requested score columns (C may be 0).
        fingerprints: uint32, shape (N,), a fingerprint of source and target text; empty unless requested.
        ascending: whether the sources of the groups are known to be in ascending order.
    """

    first_entry: int
    text: ByteArray
    line_offsets: Int64Array
    source_ends: Int64Array
    target_ends: Int64Array
    score_ends: Int64Array
    group_offsets: Int64Array
    source_lengths: Int64Array
    sources: Phrases
    targets: Phrases
    malformed: npt.NDArray[np.bool_]
    columns: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    fingerprints: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    ascending: bool = False

    def __len__(self) -> int:
        return len(self.line_offsets) - 1
