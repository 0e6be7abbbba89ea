"""Marks of a table's lines, by which they are known again: what was read once need not be parsed a second time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.tables.blocks import RawBlock
from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import borrowing_kernel, inner_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array, Mask, Phrases

# In `LineMarks.sources`: the first source of a block; and the words of one.
_FIRST = np.uint16(1 << 15)
_WORDS = np.uint16(_FIRST - 1)
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(k) for k in range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = (np.uint64(8 * k) for k in range(1, 8))


@inner_kernel
def _eight(text: ByteArray, place: int) -> np.uint64:
    """text[place:place + 8] as one number: one load, once it is compiled, as no index can be negative."""
    i = np.uint64(place)
    return (
        np.uint64(text[i]) | np.uint64(text[i + _1]) << _8 | np.uint64(text[i + _2]) << _16
        | np.uint64(text[i + _3]) << _24 | np.uint64(text[i + _4]) << _32 | np.uint64(text[i + _5]) << _40
        | np.uint64(text[i + _6]) << _48 | np.uint64(text[i + _7]) << _56
    )  # fmt: skip


@borrowing_kernel
def _hash_lines(text: ByteArray, line_offsets: Int64Array, seed: int, hashes: npt.NDArray[np.uint32]) -> None:
    """A hash of the bytes of each line, its length and the seed, never 0.

    Two hashes take eight bytes in turn, as each waits for its multiplications.  The last eight bytes may overlap those
    before: the length says how far.
    """
    for line in range(len(hashes)):
        i, end = line_offsets[line], line_offsets[line + 1]
        one, other = mix(GOLDEN, end - i), mix(GOLDEN, seed)
        if end - i >= 8:
            while i + 16 <= end:
                one, other = mix(one, _eight(text, i)), mix(other, _eight(text, i + 8))
                i += 16
            if i + 8 <= end:
                one = mix(one, _eight(text, i))
            other = mix(other, _eight(text, end - 8))
        else:
            for k in range(i, end):
                one = mix(one, text[k])
        hashes[line] = max(np.uint32(mix(one, other) >> _32), np.uint32(1))


class LineMarks(NamedTuple):
    """What is kept of N lines.

    Attributes:
        pairs: uint32, shape (N,), the fingerprint of source and target.
        lines: uint32, shape (N,), a hash of the line and of how many scores an entry has; 0 for one to be read again.
        sources: uint16, shape (N,): 0 for the source of the line before; else the words of one that begins here, and
            2^15 more at the beginning of a block: where it stands beside the source before is not known.
    """

    pairs: npt.NDArray[np.uint32]
    lines: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, raw: RawBlock, block: EntryBlock) -> LineMarks:
        """Of a block that was parsed, with fingerprints."""
        lines = hash_lines(raw)
        lines[block.faulty] = 0
        sources = np.zeros(len(block), np.uint16)
        heads, lengths = block.group_offsets[:-1], block.source_lengths
        sources[heads] = np.minimum(lengths, int(_WORDS))
        # A source without words, with more than fit, or that does not ascend, is read again.
        lines[heads[(lengths == 0) | (lengths >= _WORDS) | (not block.ascending)]] = 0
        sources[:1] |= _FIRST
        if raw.continued:
            sources[:1] = 0
        return cls(block.fingerprints, lines, sources)

    def recognise(self, raw: RawBlock) -> EntryBlock | None:
        """The block, without fields and words, if it has these lines and all are good entries; else None."""
        sources = self.sources
        # Other blocks than those that were read may begin within a source, or hold the beginning of one of them.
        if len(sources) != raw.lines or not raw.lines or not sources[0] or (sources[1:] >= _FIRST).any():
            return None
        if not np.array_equal(hash_lines(raw), self.lines):
            return None
        heads = np.flatnonzero(sources)
        lengths = (sources[heads] & _WORDS).astype(np.int64)
        return block_without_fields(raw, np.append(heads, raw.lines), lengths, np.zeros(raw.lines, np.bool_), True)


def hash_lines(raw: RawBlock) -> npt.NDArray[np.uint32]:
    """A hash of each line, and of how many scores an entry of its table has; uint32, shape (N,), never 0."""
    hashes = np.empty(raw.lines, np.uint32)
    _hash_lines(raw.text, raw.line_offsets, raw.scores, hashes)
    return hashes


def block_without_fields(
    raw: RawBlock, group_offsets: Int64Array, source_lengths: Int64Array, faulty: Mask, ascending: bool = False
) -> EntryBlock:
    """A block of lines of which nothing is known but their groups."""
    nothing, no_phrases = np.zeros(0, np.int64), Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
    return EntryBlock(
        raw.first_entry, raw.text, raw.line_offsets, nothing, nothing, nothing, group_offsets, source_lengths,
        no_phrases, no_phrases, faulty, ascending=ascending,
    )  # fmt: skip
