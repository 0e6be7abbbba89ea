"""How often pairs were used: the counts of a file of pairs, looked up for the lines of a table.

As in `lines.hashes`, a pair, a source and a target are known by 64 bits of the hash of their tokens.  A distinct pair
takes 24 bytes, and so does a distinct source or target where totals are wanted, whatever its length; three times that
for a moment while they are read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moses_compat.corpora.training_pairs import check_counts, pair_fields
from moses_compat.files.streams import Input
from moses_compat.lines.counts import CountTally
from moses_compat.lines.fields import line_offsets_of
from moses_compat.lines.hashes import KeyedSums, as_key, hash_field
from moses_compat.tables.blocks import blocks
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF
from phrasetool.kernels.hashing import FNV_BASIS, NO_KEY, fnv
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int64Array, Mask
from phrasetool.pruning.composition import HashArray

_BLOCK_BYTES = 1 << 22
_PAIR, _SOURCE, _TARGET = range(3)


@borrowing_kernel
def _hash_sides(text: ByteArray, start: int, end: int) -> tuple[np.uint64, np.uint64, np.uint64, int]:
    """The keys of pair, source and target of the line text[start:end], and where its target field ends (-1: no target).

    The key of the pair is the one of `hash_pairs`.
    """
    h, i = hash_field(text, start, end, FNV_BASIS)
    if i >= end or text[i] == LF:
        return NO_KEY, NO_KEY, NO_KEY, -1
    pair, last = hash_field(text, i + 3, end, fnv(h, LF))
    target, last = hash_field(text, i + 3, end, FNV_BASIS)
    return as_key(pair), as_key(h), as_key(target), last


@exact_kernel
def _hash(text: ByteArray, line_offsets: Int64Array, keys: HashArray) -> None:
    """The keys of every line of pairs."""
    for line in range(len(keys)):
        start, end = line_offsets[line], line_offsets[line + 1]
        while end > start and (text[end - 1] == LF or text[end - 1] == CR):
            end -= 1
        keys[line, _PAIR], keys[line, _SOURCE], keys[line, _TARGET], _ = _hash_sides(text, start, end)


@exact_kernel
def _hash_wanted(text: ByteArray, line_offsets: Int64Array, wanted: Mask, keys: HashArray) -> None:
    """keys[:, line] = the keys of pair, source and target of a line; 0 of all three if it is not wanted."""
    for line in range(len(wanted)):
        if not wanted[line]:
            for side in range(len(keys)):
                keys[side, line] = NO_KEY
        else:
            start, end = line_offsets[line], line_offsets[line + 1]
            keys[_PAIR, line], keys[_SOURCE, line], keys[_TARGET, line], _ = _hash_sides(text, start, end)


class PairUses:
    """Counts of pairs, and their totals by source and by target; made by `read`.

    Attributes:
        path: the file, as the user named it.
    """

    def __init__(self, path: str, totals: bool = True) -> None:
        self.path = path
        self._tally = CountTally()
        self._sums = [KeyedSums(np.float64) for _ in range(3 if totals else 1)]

    @classmethod
    def read(cls, path: str, totals: bool = True, say: Callable[[str], None] = lambda message: None) -> PairUses:
        """Read lines `source ||| target[ ||| count]` or a phrase table, as `pairs` understands them; gzip or not.

        Counts of a pair that comes several times are added.

        Args:
            path: the file.
            totals: whether the totals of sources and targets are wanted, too.
            say: called with a message if counts were derived.

        Raises:
            DataError: the file is damaged or empty, a line has fewer than two fields, a count is no number of at
                least 0, or a table has no joint count.
        """
        counted = cls(path, totals)
        with Input(path) as source:
            lines = 0
            for text in blocks(source, _BLOCK_BYTES):
                lines += counted._add(text, source.name, lines)
            if not lines:
                raise DataError(source.name, "no phrase pair, the file is empty")
        for sums in counted._sums:
            sums.shrink()
        for sentence in counted._tally.sentences(""):
            say(f"{path}: {sentence}")
        return counted

    def _add(self, text: ByteArray, name: str, before: int) -> int:
        """Add the pairs of a text, `before` lines of its file down; return how many lines it has."""
        found = pair_fields(text)
        counts = found.counts
        pairless = np.flatnonzero(found.places[:, 1] < 0)
        if len(pairless):
            raise DataError(name, "expected `source ||| target`, found no |||", before + int(pairless[0]) + 1)
        check_counts(name, found, before)
        missing = np.flatnonzero(np.isnan(counts))
        if len(missing):
            line = before + int(missing[0]) + 1
            message = "the pair has no count; expected `source ||| target[ ||| count]`, or a table with joint counts"
            raise DataError(name, message, line)
        self._tally += found.tally
        keys = np.empty((len(counts), 3), np.uint64)
        _hash(text, line_offsets_of(text), keys)
        for column, sums in zip(keys.T, self._sums, strict=False):
            sums.add(np.ascontiguousarray(column), counts)
        return len(counts)

    def look_up(self, text: ByteArray, line_offsets: Int64Array, wanted: Mask) -> FloatArray:
        """What is known of the pairs of the lines of a table; may be called by several threads at once.

        Args:
            text: uint8, shape (B,), lines of `source ||| target[ ||| ...]`.
            line_offsets: int64, shape (N + 1,), where each line begins, and the end of the last.
            wanted: bool, shape (N,), the lines to look up.

        Returns:
            float32, shape (N, 3): the count of the pair, the total of its source, the total of its target; 0 where it
            is unknown, or not wanted, or the line holds no pair, and for totals that were not wanted.
        """
        if text.dtype != np.uint8 or line_offsets.dtype != np.int64 or wanted.dtype != np.bool_:
            raise ValueError("expected uint8 text, int64 offsets and a mask")
        if len(line_offsets) != len(wanted) + 1 or line_offsets[-1] > len(text):
            raise ValueError(f"{len(line_offsets)} offsets do not fit {len(wanted)} lines in {len(text)} bytes")
        keys = np.empty((3, len(wanted)), np.uint64)
        _hash_wanted(np.ascontiguousarray(text), np.ascontiguousarray(line_offsets), np.ascontiguousarray(wanted), keys)
        found = np.zeros((len(wanted), 3), np.float32)
        for side, sums in enumerate(self._sums):
            found[:, side] = sums.look_up(keys[side])
        return found
