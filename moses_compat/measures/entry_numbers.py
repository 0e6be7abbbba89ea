"""The entries of a table as pairs of numbers: which sources and targets are the same, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, EntryBlock, Int32Array, Int64Array, Phrases
from phrasetool.pruning.measures import NumberedEntries
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.unique_phrases import number_distinct


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


class EntryNumbering:
    """Numbers the sources and targets of a table, which comes block by block."""

    def __init__(self) -> None:
        self._symbols = Symbols(), Symbols()
        self._sources: list[Phrases] = []
        self._targets: list[Phrases] = []
        self._groups: list[Int32Array] = []
        self._known = 0
        self._labelled = 0

    def add(self, text: ByteArray, places: FieldPlaces) -> None:
        """Number the next entries; the text is not needed any more afterwards."""
        heads = places.heads
        sources = self._symbols[0].read_fields(text, places.starts[heads], places.source_ends[heads])
        self._labelled += int(np.count_nonzero(sources.lengths > places.words))
        self._sources.append(sources)
        self._targets.append(self._symbols[1].read_fields(text, places.source_ends + 3, places.target_ends))
        self._groups.append((self._known + places.groups).astype(np.int32))
        self._known += len(heads)

    def entries(self, name: str) -> NumberedEntries:
        """All entries so far.  The words are given up: nothing can be added afterwards.

        Args:
            name: the table, as messages call it.

        Raises:
            DataError: every source has a label such as `[X]`.  Two rules cannot be put side by side to make up a third.
        """
        if self._known and self._labelled == self._known:
            message = "all its entries are rules with labels such as [X]; compositions need a table of phrases"
            raise DataError(name, message)
        sources, by_group = _distinct(self._sources)
        targets, target_numbers = _distinct(self._targets)
        groups = np.concatenate([np.zeros(0, np.int32), *self._groups])
        return NumberedEntries(sources, targets, by_group[groups], target_numbers)


def _distinct(parts: list[Phrases]) -> tuple[Phrases, Int32Array]:
    """The distinct phrases of the parts, which are given up, and the number of each phrase."""
    phrases = Phrases.concatenate(parts)
    parts.clear()
    numbers, firsts = number_distinct(phrases)
    return phrases.select(firsts), numbers.astype(np.int32)
