"""Where the fields of some entries of a block are, and the words of their sources and targets as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.lines.word_hashes import hash_words
from phrasetool.phrases import ByteArray, EntryBlock, FloatArray, Int64Array
from phrasetool.pruning.composition import LevelledEntries


@dataclass(frozen=True)
class FieldPlaces:
    """Where the fields of M entries of a block are, in H source groups; all arrays int64.

    Attributes:
        starts: shape (M,), where their lines begin.
        source_ends, target_ends: shape (M,), their first two `|||`.
        heads: shape (H,), the first of them in each group.
        groups: shape (M,), the group of each.
        words: shape (H,), words of each source, labels such as `[X]` left out.
    """

    starts: Int64Array
    source_ends: Int64Array
    target_ends: Int64Array
    heads: Int64Array
    groups: Int64Array
    words: Int64Array

    @classmethod
    def of(cls, block: EntryBlock, rows: Int64Array) -> FieldPlaces:
        """The entries `rows`, int64, shape (M,), of a block, ascending."""
        groups = np.repeat(np.arange(len(block.source_lengths)), np.diff(block.group_offsets))[rows]
        first = np.ones(len(rows), np.bool_)
        first[1:] = groups[1:] != groups[:-1]
        heads = np.flatnonzero(first)
        return cls(
            block.line_offsets[:-1][rows], block.source_ends[rows], block.target_ends[rows], heads,
            np.cumsum(first) - 1, block.source_lengths[groups[heads]],
        )  # fmt: skip


@dataclass(frozen=True)
class ComposedEntries:
    """What compositions need to know of some entries of a block.

    Attributes:
        entries: ready to be written.
        sources: how many source groups they are in.
        rules: how many of these have a label such as `[X]` in their source.
    """

    entries: LevelledEntries
    sources: int
    rules: int

    @classmethod
    def of(cls, text: ByteArray, places: FieldPlaces, scores: FloatArray) -> ComposedEntries:
        """Hash the words of M entries.

        Args:
            text: uint8, of their block.
            places: of the M entries.
            scores: float32, shape (M,).
        """
        heads = places.heads
        sources = hash_words(text, places.starts[heads], places.source_ends[heads])
        targets = hash_words(text, places.source_ends + 3, places.target_ends)
        sizes = np.bincount(places.groups, minlength=len(heads))
        rules = int(np.count_nonzero(sources.lengths > places.words))
        return cls(LevelledEntries.of(sources, sizes, targets, scores), len(heads), rules)
