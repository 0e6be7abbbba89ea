"""Which sources of a table come back after other sources, and which of their first words: nine bytes a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Input
from moses_compat.lines.separators import find_separator
from moses_compat.tables.blocks import raw_blocks
from phrasetool.kernels.bytes import LF, SPACE, same_bytes, skip_blanks, token_end
from phrasetool.kernels.hashing import FNV_BASIS, fnv
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

_LARGEST = 255
# Keys that CreateProbingPT makes room for, a source.
_PROBING_ROOM = 1.2


class SourceGroups:
    """All source groups: a hash and, in a byte, the size of each."""

    def __init__(self) -> None:
        self._hashes: list[Int64Array] = []
        self._sizes: list[npt.NDArray[np.uint8]] = []
        self._large: dict[int, int] = {}
        self._count = 0

    def add(self, hashes: Int64Array, sizes: Int64Array) -> None:
        """Add the groups of a block, shape (G,) each."""
        self._hashes.append(hashes.copy())
        self._sizes.append(np.minimum(sizes, _LARGEST).astype(np.uint8))
        for group in np.flatnonzero(sizes > _LARGEST).tolist():
            self._large[self._count + group] = int(sizes[group]) - _LARGEST
        self._count += len(hashes)

    def returning(self) -> tuple[int, int]:
        """How many groups have a source that had a group before; the first line of the first of them, from 1."""
        if not self._count:
            return 0, 0
        hashes = np.concatenate(self._hashes)
        self._hashes.clear()
        ordered = np.sort(hashes)
        repeated = np.unique(ordered[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)])
        if not len(repeated):
            return 0, 0
        places = np.flatnonzero(np.isin(hashes, repeated))
        _, first = np.unique(hashes[places], return_index=True)
        again = np.delete(places, first)
        group = int(again[0])
        before = sum(int(size) for size in np.concatenate(self._sizes)[:group].astype(np.int64).tolist())
        before += sum(more for large, more in self._large.items() if large < group)
        return len(again), before + 1


@exact_kernel
def _open_prefixes(
    text: ByteArray, line_offsets: Int64Array, labelled: bool, hashes: Int64Array, lines: Int64Array, opened: Int64Array
) -> int:
    """Put the hash of every beginning of a source that the source before does not have into `hashes`.

    Args:
        labelled: whether the last token of a source is its label, which is left out.
        lines: receives the line of each.
        opened: receives how many each line opens; -1 where the source is that of the line before, or there is none.

    Returns:
        How many beginnings there are.
    """
    count = 0
    before, before_end = np.int64(0), np.int64(-1)
    for line in range(len(line_offsets) - 1):
        start = line_offsets[line]
        end = find_separator(text, start, line_offsets[line + 1])
        opened[line] = -1
        if end < 0:
            continue
        i, j = skip_blanks(text, start, end), skip_blanks(text, before, before_end)
        same = before_end >= 0
        h = FNV_BASIS
        new = 0
        while i < end:
            first, i = i, token_end(text, i, end)
            after = skip_blanks(text, i, end)
            if labelled and after == end:
                break
            if same:
                last = token_end(text, j, before_end)
                same = last - j == i - first and i > first and same_bytes(text, j, text, first, i - first)
                j = skip_blanks(text, last, before_end)
            for k in range(first, i):
                h = fnv(h, text[k])
            h = fnv(h, SPACE)
            if not same:
                hashes[count], lines[count] = np.int64(h), line
                count += 1
                new += 1
            i = after
        rest = skip_blanks(text, token_end(text, j, before_end), before_end) if labelled and j < before_end else j
        if new > 0 or before_end < 0 or rest < before_end:
            opened[line] = new
        before, before_end = start, end
    return count


@dataclass(frozen=True)
class SourcePrefixes:
    """The beginnings of the sources of a table, in words.

    Attributes:
        returning: how many beginnings come back after other sources.
        first: the line of the first of them, from 1; 0 without one.
        sources: runs of lines with one source.
        keys: beginnings that CreateProbingPT keeps of rules: each that is new, and each source, but of the last source
            that alone.
    """

    returning: int
    first: int
    sources: int
    keys: int

    @property
    def overfull(self) -> bool:
        """Whether the hash table that CreateProbingPT makes for rules has too little room."""
        return self.keys >= max(self.sources + 1, int(_PROBING_ROOM * self.sources))


def read_prefixes(source: Input, labelled: bool) -> SourcePrefixes:
    """Read a table once more; takes 16 bytes a beginning.

    Args:
        source: the table, at its beginning.
        labelled: see `_open_prefixes`.

    Raises:
        DataError: the file cannot be read.
    """
    hashes, lines, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    before = np.zeros(0, np.uint8)
    for raw in raw_blocks(source):
        # The line before the block comes along, so that the border is looked at too.
        ahead = int(len(before) > 0)
        text = np.concatenate([before, raw.text])
        offsets = np.concatenate([np.zeros(ahead, np.int64), raw.line_offsets + len(before)])
        found, places = np.empty(len(text) // 2 + 1, np.int64), np.empty(len(text) // 2 + 1, np.int64)
        opened = np.empty(len(offsets) - 1, np.int64)
        count = _open_prefixes(text, offsets, labelled, found, places, opened)
        new = places[:count] >= ahead
        hashes.append(found[:count][new])
        lines.append(places[:count][new] - ahead + raw.first_entry)
        keys.append(opened[ahead:][opened[ahead:] >= 0])
        before = text[offsets[-2] :].copy()
        if before[-1] != LF:
            before = np.append(before, LF)
    every, where, added = np.concatenate(hashes), np.concatenate(lines), np.concatenate(keys)
    _, firsts = np.unique(every, return_index=True)
    again = np.delete(where, firsts)
    total = int(np.maximum(added[:-1], 1).sum()) + 1 if len(added) else 0
    return SourcePrefixes(len(again), int(again[0]) + 1 if len(again) else 0, len(added), total)
