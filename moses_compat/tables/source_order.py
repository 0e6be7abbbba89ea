"""The order of the sources of a table: check that the entries of a source stand together while the table streams.

Work that looks at all entries of a source takes a run of lines for them.  In a table that is not sorted a source comes
back after others; each of its runs would be taken for all of it, and almost nothing would be removed.

While sources ascend bytewise, as in every table that Moses writes, none can come back, and nothing is kept of them.
From the first one on that does not ascend, all are kept as a set, some 18 bytes each; those before it are read again.
A stream cannot be, so of each of its sources eight bytes go to a file from a million sources on.  A table in another
order whose sources stand together is as good as a sorted one.

Reports for `inspect` and `binarize` count the sources, and the first words of sources, that come back: nine bytes a
group.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from moses_compat.files.finished_work import digest_of_bytes
from moses_compat.files.paths import is_stream
from moses_compat.files.streams import Input
from moses_compat.lines.fields import BARS, find_separator
from moses_compat.lines.hashes import KeyedSums, as_key, hash_field, side_keys
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import LineScan, scan_lines
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF, SPACE, same_bytes, skip_blanks, token_end
from phrasetool.kernels.hashing import FNV_BASIS, fnv
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray
from phrasetool.text_splitting import single_spaced

_IN_MEMORY = 8 << 20
# A table of no more lines was written by hand, as those of Moses' regression tests, some of which are not sorted; it is
# warned of.  The demo's table, shuffled, has a source that comes back among its first 208 lines.
FEW_LINES = 100
_BLANKS = _TAB, _SPACE = b"\t "
# Of a source, in a message.
_SHOWN_CHARACTERS = 60

Result = TypeVar("Result")
Item = TypeVar("Item")
Made = TypeVar("Made")
_LARGEST = 255
# Keys that CreateProbingPT makes room for, a source.
_PROBING_ROOM = 1.2


def not_sorted(name: str, first: int) -> DataError:
    """Return the error of a table whose sources must ascend bytewise.

    Args:
        name: the table, as messages call it.
        first: number of the first entry of the block that does not ascend, from 0.
    """
    return DataError(name, "the sources are not sorted bytewise from about here on", first + 1, remedy="sort it first")


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
        if (end := text.find(BARS)) >= 0:
            return text[: end + len(BARS)]
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


def follow_blocks(
    name: str,
    items: Iterable[Item],
    work: Callable[[Item], tuple[SourceLook | None, Made]],
    order: SourceOrder,
    scan: TableScan,
    pass_over: Callable[[RawBlock, LineScan], None] = lambda raw, lines: None,
) -> Iterator[tuple[RawBlock, Made]]:
    """Each block of a table with what is made of it, in order.

    Args:
        name: of this pass through the table, where several are made.
        items: the blocks, each first in a tuple with what else belongs to it.
        work: makes something of a block, and looks at its sources; called by `scan.threads` threads.
        order: of the sources.
        scan: how the table is read; with `finished`, what was made before is not made again.
        pass_over: takes notice of a block of which that is so; called by the threads, too.

    Raises:
        DataError: as `SourceOrder.follow`, `FinishedWork.run` and `work`.
    """

    def done(item: Any) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
        look, made = work(item)
        return look, (item[0], made)

    def again(item: Any, made: Made) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
        raw = item[0]
        lines = scan_lines(raw.text, raw.scores, line_offsets=raw.line_offsets)
        pass_over(raw, lines)
        return order.look(raw, lines), (raw, made)

    def digest(item: Any) -> bytes:
        return digest_of_bytes(item[0].text)

    if scan.finished is None:
        return order.follow((scan.runner or run)(items, done, scan.threads))
    found = scan.finished.run(
        name, digest, items, done, scan.threads, lambda result: result[1][1], again, runner=scan.runner
    )
    return order.follow(found)


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
