"""Ragged arrays of phrases, and a block of phrase-table entries.

A phrase is a sequence of word ids.  Many phrases are kept in two arrays: `words`, all ids one after another, and
`offsets`, where each phrase begins, so that phrase i is `words[offsets[i]:offsets[i + 1]]`.
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
        counts: N integers or truth values.

    Returns:
        int64, shape (N + 1,).
    """
    values = np.asarray(counts)
    sums = np.zeros(len(values) + 1, np.int64)
    # An empty list is an array of floats, which cannot be added up into integers.
    if len(values):
        np.cumsum(values, out=sums[1:])
    return sums


def gathered_runs(starts: Int64Array, lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return how to gather runs of items, one run after another.

    Args:
        starts: int64, shape (N,), place of the first item of each run.
        lengths: int64, shape (N,), items of each run.

    Returns:
        int64, shape (N + 1,), the offsets of the gathered runs; int64, the place of each gathered item.
    """
    offsets = prefix_sums(lengths)
    places: Int64Array = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return offsets, places


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
        """Build from a list of lists of word ids."""
        offsets = prefix_sums([len(phrase) for phrase in phrases])
        words = np.fromiter((word for phrase in phrases for word in phrase), np.int32, offsets[-1])
        return cls(offsets, words)

    @classmethod
    def concatenate(cls, parts: Sequence[Phrases]) -> Phrases:
        """All phrases of the parts, one part after another; there may be none."""
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
        """Words per phrase, int64, shape (N,)."""
        return np.diff(self.offsets)

    def select(self, index: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Phrases:
        """Return the phrases at `index` (integers, or a mask of shape (N,)), in that order."""
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index
        offsets, places = gathered_runs(self.offsets[:-1][index], self.lengths[index])
        return Phrases(offsets, self.words[places])

    def part(self, first: int, last: int) -> Phrases:
        """Return the phrases first..last - 1; their words are a view."""
        offsets = self.offsets[first : last + 1]
        return Phrases(offsets - offsets[0], self.words[offsets[0] : offsets[-1]])

    def padded(self, length: int, fill: int = 0) -> Int32Array:
        """Return the phrases as a matrix, int32, shape (N, length), filled up with `fill`.

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
    """A run of consecutive phrase-table entries whose first and last source groups are whole.

    An entry is one line of a table.  A line that cannot be read is an entry too, with `malformed` set: it keeps its
    place, has no similarity and is never selected for removal by a rule.

    Attributes:
        first_entry: 0-based number of the block's first entry in its table.
        text: the bytes of the block, uint8, exactly as read.
        line_offsets: int64, shape (N + 1,), where each entry's line begins; a line includes its line feed.
        source_ends, target_ends: int64, shape (N,), where the first two `|||` of an entry are, -1 where missing.
        score_ends: int64, shape (N,), the byte after an entry's last score.
        group_offsets: int64, shape (G + 1,), the first entry of each source group.
        source_lengths: int64, shape (G,), words of each source, known or not.
        sources: the G source phrases (without words if the block was read without a vocabulary).
        targets: the N target phrases.
        malformed: bool, shape (N,).
        columns: float64, shape (N, C), score columns that were asked for (C may be 0).
        fingerprints: uint32, shape (N,), a fingerprint of source and target text; empty unless asked for.
        ascending: whether it is known that the source of each group stands behind that of the one before.
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
