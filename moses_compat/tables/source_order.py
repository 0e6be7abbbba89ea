"""Sees to it, while a table streams, that the entries of every source stand together.

What looks at all entries of a source takes a run of lines for them.  In a table that is not sorted a source comes back
after others; each of its runs would be taken for all of it, and almost nothing would ever go.

While sources ascend bytewise, as in every table that Moses writes, none can come back, and eight bytes a source go to a
file from a million sources on.  From the first one on that does not ascend, all are kept as a set, some 18 bytes each.
A table in another order whose sources stand together is as good as a sorted one.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import numpy as np

from moses_compat.lines.pair_hashes import HashArray, as_key, hash_field
from moses_compat.lines.phrase_totals import KeyedSums
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import common_prefix
from phrasetool.kernels.hashing import FNV_BASIS
from phrasetool.kernels.interning import NO_KEY
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array

_IN_MEMORY = 8 << 20
# A table of no more lines was written by hand, as those of Moses' regression tests, some of which are not sorted; it is
# warned of.  The demo's table, shuffled, has a source that comes back among its first 208 lines.
FEW_LINES = 100
# Of a source, in a message.
_SHOWN_CHARACTERS = 60


@exact_kernel
def _look(
    text: ByteArray,
    line_offsets: Int64Array,
    source_ends: Int64Array,
    group_offsets: Int64Array,
    heads: Int64Array,
    hashes: HashArray,
) -> bool:
    """Put the first line with a source of every group into `heads`, and the hash of its tokens into `hashes`.

    A group without such a line has the head -1 and the hash 0.  Returns whether the sources ascend.
    """
    ascending = True
    before, before_end = np.int64(0), np.int64(-1)
    for group in range(len(heads)):
        heads[group] = -1
        hashes[group] = NO_KEY
        line = group_offsets[group]
        while line < group_offsets[group + 1] and source_ends[line] < 0:
            line += 1
        if line == group_offsets[group + 1]:
            continue
        start, end = line_offsets[line], source_ends[line] + 3
        heads[group] = line
        hashes[group] = as_key(hash_field(text, start, end, FNV_BASIS)[0])
        if before_end >= 0 and ascending:
            # With the bars at its end no source begins another one.
            shorter = min(end - start, before_end - before)
            k = common_prefix(text, start, text, before, shorter)
            ascending = k < shorter and text[start + k] > text[before + k]
        before, before_end = start, end
    return ascending


@dataclass(frozen=True)
class SourceLook:
    """The sources of a block of G groups.

    Attributes:
        hashes: uint64, shape (G,), of their tokens; 0 for a group without a source.
        heads: int64, shape (G,), the line of the block where each stands; -1 without one.
        sources: as they are written, with the bars behind them, of the first group and the last; empty without one.
        ascending: whether they ascend bytewise.
        text, line_offsets: the block.
    """

    hashes: HashArray
    heads: Int64Array
    sources: tuple[bytes, bytes]
    ascending: bool
    text: ByteArray
    line_offsets: Int64Array

    @classmethod
    def of(
        cls, text: ByteArray, line_offsets: Int64Array, source_ends: Int64Array, group_offsets: Int64Array
    ) -> SourceLook:
        """Look at a block; may be called by several threads.

        Args:
            text: uint8, shape (B,).
            line_offsets: int64, shape (N + 1,).
            source_ends: int64, shape (N,), where the first `|||` of each line is, -1 without one.
            group_offsets: int64, shape (G + 1,), the first line of each group.
        """
        groups = len(group_offsets) - 1
        heads, hashes = np.empty(groups, np.int64), np.empty(groups, np.uint64)
        ascending = bool(_look(text, line_offsets, source_ends, group_offsets, heads, hashes))
        there = heads[heads >= 0]
        ends = [there[0], there[-1]] if len(there) else []
        sources = [text[line_offsets[line] : source_ends[line] + 3].tobytes() for line in ends]
        first, last = sources or (b"", b"")
        return cls(hashes, heads, (first, last), ascending, text, line_offsets)


class SourceOrder:
    """Looks for a source that comes back, block after block.

    Args:
        name: the table, as messages call it.
        scan: with `force` a source that comes back is a warning, the first time.
    """

    def __init__(self, name: str, scan: TableScan) -> None:
        self._name, self._scan = name, scan
        self._last = b""
        self._ascended = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._seen: KeyedSums[np.int32] | None = None
        self._told = False
        self._pending: DataError | None = None

    def __del__(self) -> None:
        self._ascended.close()

    def add(self, first_entry: int, look: SourceLook) -> None:
        """Take the next block.

        Args:
            first_entry: 0-based number of its first line.

        Raises:
            DataError: a source came back after others, the table has more than `FEW_LINES`, and the scan does not say
                `force`.
        """
        if self._pending and first_entry + len(look.line_offsets) - 1 > FEW_LINES:
            raise self._pending
        if self._told:
            return
        if self._seen is None and look.ascending and (look.sources[0] > self._last or not look.sources[0]):
            self._ascended.write(look.hashes.tobytes())
            self._last = look.sources[1] or self._last
            return
        hashes = look.hashes[look.heads >= 0]
        heads = look.heads[look.heads >= 0]
        seen = self._seen = self._seen or self._all_before()
        again = seen.look_up(hashes) > 0
        _, first = np.unique(hashes, return_index=True)
        twice = np.ones(len(hashes), np.bool_)
        twice[first] = False
        found = np.flatnonzero(again | twice)
        if len(found):
            self._tell(first_entry, look, int(heads[found[0]]))
        seen.add(hashes, np.ones(len(hashes), np.int32))

    def _all_before(self) -> KeyedSums[np.int32]:
        """Whatever ascended until now."""
        seen = KeyedSums(np.int32)
        self._ascended.seek(0)
        while piece := self._ascended.read(_IN_MEMORY):
            hashes = np.frombuffer(piece, np.uint64)
            seen.add(hashes, np.ones(len(hashes), np.int32))
        self._ascended.close()
        return seen

    def _tell(self, first_entry: int, look: SourceLook, line: int) -> None:
        text = look.text[look.line_offsets[line] : look.line_offsets[line + 1]].tobytes()
        source = " ".join(text.partition(b"|||")[0].decode("utf-8", "replace").split())
        if len(source) > _SHOWN_CHARACTERS:
            source = source[: _SHOWN_CHARACTERS - 3] + "..."
        message = (
            f"the source {source!r} comes back after others; expected all entries of a source together, as in a table "
            "sorted with LC_ALL=C sort"
        )
        error = DataError(self._name, message, first_entry + line + 1, remedy="sort the table")
        self._told = True
        if self._scan.force or first_entry + len(look.line_offsets) - 1 > FEW_LINES:
            self._scan.refuse(error)
        else:
            self._pending = error

    def finish(self) -> None:
        """The table is at its end; warn of one of a few lines."""
        if self._pending:
            self._scan.warn(str(self._pending))
