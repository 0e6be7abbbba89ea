"""Sees to it, while a table streams, that the entries of every source stand together.

What looks at all entries of a source takes a run of lines for them.  In a table that is not sorted a source comes back
after others; each of its runs would be taken for all of it, and almost nothing would ever go.

While sources ascend bytewise, as in every table that Moses writes, none can come back, and nothing is kept of them.
From the first one on that does not ascend, all are kept as a set, some 18 bytes each; those before it are read again.
A stream cannot be, so of each of its sources eight bytes go to a file from a million sources on.  A table in another
order whose sources stand together is as good as a sorted one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from moses_compat.files.names import is_stream
from moses_compat.files.streams import Input
from moses_compat.lines.pair_hashes import HashArray, as_key, hash_field
from moses_compat.lines.phrase_totals import KeyedSums, side_keys
from moses_compat.lines.separators import find_separator
from moses_compat.tables.blocks import RawBlock, TableScan
from phrasetool.errors import DataError
from phrasetool.kernels.hashing import FNV_BASIS
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.text_splitting import single_spaced

_IN_MEMORY = 8 << 20
# A table of no more lines was written by hand, as those of Moses' regression tests, some of which are not sorted; it is
# warned of.  The demo's table, shuffled, has a source that comes back among its first 208 lines.
FEW_LINES = 100
_BLANKS = _TAB, _SPACE = b"\t "
_BARS = b"|||"
# Of a source, in a message.
_SHOWN_CHARACTERS = 60

Result = TypeVar("Result")


class Fields(Protocol):
    """What was found of N lines in G groups."""

    @property
    def group_offsets(self) -> Int64Array:
        """int64, shape (G + 1,), the first line of each group."""

    @property
    def ascending(self) -> bool:
        """Whether the sources of the groups are known to ascend, see `LineScan`."""


def _steps_up(before: bytes, source: bytes) -> bool:
    """As `parser.follow` says it of neighbours, for two sources that end with a blank and bars."""
    for k, (a, b) in enumerate(zip(before, source, strict=False)):
        if a != b:
            return a < b and _TAB not in (a, b) and (_SPACE not in (a, b) or (k > 0 and source[k - 1] not in _BLANKS))
    return False


@exact_kernel
def _hash_sources(
    text: ByteArray,
    line_offsets: Int64Array,
    group_offsets: Int64Array,
    heads: Int64Array,
    hashes: HashArray,
) -> int:
    """Put the first line with a source of every group that has one into `heads`, the hash of its tokens into `hashes`.

    Returns how many groups have one.
    """
    found = 0
    for group in range(len(group_offsets) - 1):
        for line in range(group_offsets[group], group_offsets[group + 1]):
            start = line_offsets[line]
            end = find_separator(text, start, line_offsets[line + 1])
            if end >= 0:
                heads[found] = line
                hashes[found] = as_key(hash_field(text, start, end + 3, FNV_BASIS)[0])
                found += 1
                break
    return found


def _first_source(raw: RawBlock, lines: Iterable[int]) -> bytes:
    """The source of the first of these lines that has one, as it is written, with the bars behind it; or nothing."""
    for line in lines:
        text = raw.text[raw.line_offsets[line] : raw.line_offsets[line + 1]].tobytes()
        if (end := text.find(_BARS)) >= 0:
            return text[: end + len(_BARS)]
    return b""


@dataclass(frozen=True)
class Hashed:
    """The H groups of a block that have a source.

    Attributes:
        heads: int64, shape (H,), the line of the block where each stands.
        hashes: uint64, shape (H,), of their tokens.
    """

    heads: Int64Array
    hashes: HashArray

    @classmethod
    def of(cls, raw: RawBlock, fields: Fields) -> Hashed:
        """Hash the sources of a block; may be called by several threads."""
        groups = len(fields.group_offsets) - 1
        heads, hashes = np.empty(groups, np.int64), np.empty(groups, np.uint64)
        found = _hash_sources(raw.text, raw.line_offsets, fields.group_offsets, heads, hashes)
        return cls(heads[:found], hashes[:found])


@dataclass(frozen=True)
class SourceLook:
    """The sources of a block.

    Attributes:
        raw, fields: the block, and what was found in it.
        first, last: as they are written, with the bars behind them; empty without one, or if they do not ascend.
        hashed: all of them, if that was known to be needed.
    """

    raw: RawBlock
    fields: Fields
    first: bytes = b""
    last: bytes = b""
    hashed: Hashed | None = None


class SourceOrder:
    """Looks for a source that comes back, block after block.

    Args:
        source: the table, which is read by others; again, from its beginning, if its sources do not ascend.
        scan: with `force` a source that comes back is a warning, the first time.
        needed: whether the order matters; nothing is looked at if not.
    """

    def __init__(self, source: Input, scan: TableScan, needed: bool = True) -> None:
        self._source, self._scan, self._needed = source, scan, needed
        self._last = b""
        # What is read once must be hashed as it comes.
        self._hashes_all = is_stream(source.path)
        self._before = tempfile.SpooledTemporaryFile(_IN_MEMORY) if self._hashes_all else None  # noqa: SIM115
        # Read by threads: from when on hashes are wanted of every block.
        self._ascends = True
        self._seen: KeyedSums[np.int32] = KeyedSums(np.int32)
        self._told = False
        self._pending: DataError | None = None

    def __getstate__(self) -> dict[str, Any]:
        # In another process blocks are looked at, and not followed.
        return {**self.__dict__, "_before": None, "_seen": None, "_pending": None, "_told": False}

    def __del__(self) -> None:
        if self._before:
            self._before.close()

    def look(self, raw: RawBlock, fields: Fields) -> SourceLook | None:
        """Look at a block; may be called by several threads.  None where nothing needs to be known."""
        if not self._needed or (self._told and not self._pending):
            return None
        first, last = b"", b""
        if fields.ascending:
            first, last = (_first_source(raw, lines) for lines in (range(raw.lines), reversed(range(raw.lines))))
        wanted = self._hashes_all or not self._ascends or not fields.ascending
        return SourceLook(raw, fields, first, last, Hashed.of(raw, fields) if wanted else None)

    def follow(self, results: Iterable[tuple[SourceLook | None, Result]]) -> Iterator[Result]:
        """What was made of the blocks, once the order of their sources is found to be good.

        Args:
            results: of all blocks, in order, each with its look.

        Raises:
            DataError: a source came back after others, the table has more than `FEW_LINES`, and the scan does not say
                `force`; or the table is another one when it is read again.
        """
        for look, result in results:
            if look:
                self._add(look)
            yield result
        if self._pending:
            self._scan.warn(str(self._pending))

    def _add(self, look: SourceLook) -> None:
        if self._pending and look.raw.first_entry + look.raw.lines > FEW_LINES:
            raise self._pending
        if self._told:
            return
        up = look.fields.ascending and (not look.first or not self._last or self._follows(look))
        if self._ascends and up:
            if self._before and look.hashed:
                self._before.write(look.hashed.hashes.tobytes())
            self._last = look.last or self._last
            return
        if self._ascends:
            self._ascends = False
            for keys in self._all_before(look.raw.first_entry):
                self._keep(keys)
        hashed = look.hashed or Hashed.of(look.raw, look.fields)
        _, first = np.unique(hashed.hashes, return_index=True)
        again = np.ones(len(hashed.hashes), np.bool_)
        again[first] = False
        known = self._seen.look_up(hashed.hashes) > 0
        if look.raw.continued:
            known[:1] = False
        again |= known
        if again.any():
            self._tell(look.raw, int(hashed.heads[np.argmax(again)]))
        self._keep(hashed.hashes)

    def _follows(self, look: SourceLook) -> bool:
        """Whether the first source of a block may stand behind the last one before."""
        return look.first == self._last if look.raw.continued else _steps_up(self._last, look.first)

    def _keep(self, hashes: HashArray) -> None:
        self._seen.add(hashes, np.ones(len(hashes), np.int32))

    def _all_before(self, entries: int) -> Iterator[HashArray]:
        """Hashes of the sources of the first entries, which all ascend; 0 is none."""
        if self._before:
            self._before.seek(0)
            while piece := self._before.read(_IN_MEMORY):
                yield np.frombuffer(piece, np.uint64)
            self._before.close()
            return
        done = 0
        with Input(self._source.path, self._source.name) as source:
            raws = self._scan.raw_blocks(source) if entries else iter(())
            for raw in raws:
                rows = np.arange(min(raw.lines, entries - done))
                yield side_keys(raw.text, raw.line_offsets, rows)[0]
                done += len(rows)
                if done == entries:
                    return
        if done < entries:
            raise DataError(self._source.name, f"has {done:,} lines now, but had {entries:,} when it was read before")

    def _tell(self, raw: RawBlock, line: int) -> None:
        text = raw.text[raw.line_offsets[line] : raw.line_offsets[line + 1]].tobytes()
        source = single_spaced(text.partition(b"|||")[0].decode("utf-8", "replace"))
        if len(source) > _SHOWN_CHARACTERS:
            source = source[: _SHOWN_CHARACTERS - 3] + "..."
        message = (
            f"the source {source!r} comes back after others; expected all entries of a source together, as in a table "
            "sorted with LC_ALL=C sort"
        )
        error = DataError(self._source.name, message, raw.first_entry + line + 1, remedy="sort the table")
        if self._scan.force or raw.first_entry + raw.lines > FEW_LINES:
            self._scan.refuse(error)
        else:
            self._pending = error
        self._told = True
