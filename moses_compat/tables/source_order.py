"""Check, while a table is streamed, that the entries of each source are contiguous.

Code that needs all entries of a source treats a run of lines as the set of its entries.  In an unsorted table, the
entries of a source form several runs; each would be treated as complete, and almost nothing would be removed.

While sources ascend bytewise, as in every table that Moses writes, none can occur again, and nothing is stored.  From
the first source that does not ascend, all sources are stored in a set, some 18 bytes each; the earlier ones are read
again.  A stream cannot be read again, so eight bytes per source are stored, in a file from a million sources on.  A
table in another order is accepted like a sorted one if its sources are contiguous.

Reports for `inspect` and `binarize` count the sources, and the prefixes of sources, that are not contiguous; this takes
nine bytes per group.
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
# A table of at most this many lines is assumed to be written by hand, like those of Moses' regression tests, some of
# which are not sorted; it only causes a warning.  In the shuffled table of the demo, a source occurs again within 208
# lines.
FEW_LINES = 100
_BLANKS = _TAB, _SPACE = b"\t "
# Number of characters of a source in a message.
_SHOWN_CHARACTERS = 60

Result = TypeVar("Result")
Item = TypeVar("Item")
Made = TypeVar("Made")
_LARGEST = 255
# Number of keys per source for which CreateProbingPT reserves space.
_PROBING_ROOM = 1.2


def not_sorted(name: str, first: int) -> DataError:
    """Return the error of a table whose sources must ascend bytewise.

    Args:
        name: name of the table in messages.
        first: number of the first entry of the block that does not ascend, from 0.
    """
    return DataError(name, "the sources are not sorted bytewise from about here on", first + 1, remedy="sort it first")


class Fields(Protocol):
    """The groups of N lines."""

    @property
    def group_offsets(self) -> Int64Array:
        """int64, shape (G + 1,), the first line of each group."""

    @property
    def ascending(self) -> bool:
        """Whether the sources of the groups are known to ascend, see `LineScan`."""


def _steps_up(before: bytes, source: bytes) -> bool:
    """Return whether two neighbours ascend as defined by `parser.follow`; both sources end with a blank and bars."""
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
    """Store the first line with a source of each group in `heads`, and the hash of its tokens in `hashes`.

    Returns the number of groups with a source.
    """
    count = 0
    for group in range(len(group_offsets) - 1):
        for line in range(group_offsets[group], group_offsets[group + 1]):
            start = line_offsets[line]
            end = find_separator(text, start, line_offsets[line + 1])
            if end >= 0:
                heads[count] = line
                hashes[count] = as_key(hash_field(text, start, end + 3, FNV_BASIS)[0])
                count += 1
                break
    return count


def _first_source(raw: RawBlock, lines: Iterable[int]) -> bytes:
    """Return the first source among these lines, as written, including the bars after it; empty if there is none."""
    for line in lines:
        text = raw.text[raw.line_offsets[line] : raw.line_offsets[line + 1]].tobytes()
        if (end := text.find(BARS)) >= 0:
            return text[: end + len(BARS)]
    return b""


@dataclass(frozen=True)
class Hashed:
    """The H groups of a block that have a source.

    Attributes:
        heads: int64, shape (H,), the first line of each in the block.
        hashes: uint64, shape (H,), hashes of their tokens.
    """

    heads: Int64Array
    hashes: HashArray

    @classmethod
    def of(cls, raw: RawBlock, fields: Fields) -> Hashed:
        """Hash the sources of a block; may be called by several threads."""
        groups = len(fields.group_offsets) - 1
        heads, hashes = np.empty(groups, np.int64), np.empty(groups, np.uint64)
        count = _hash_sources(raw.text, raw.line_offsets, fields.group_offsets, heads, hashes)
        return cls(heads[:count], hashes[:count])


@dataclass(frozen=True)
class SourceLook:
    """The sources of a block.

    Attributes:
        raw, fields: the block, and its groups.
        first, last: first and last source, as written, including the bars; empty if missing, or if the sources do not
            ascend.
        hashed: hashes of all sources, if they were known to be needed.
    """

    raw: RawBlock
    fields: Fields
    first: bytes = b""
    last: bytes = b""
    hashed: Hashed | None = None


class SourceOrder:
    """Block-by-block check that no source occurs again later.

    Args:
        source: the table, which callers read; it is read again, from its beginning, if its sources do not ascend.
        scan: with `force`, the first source that occurs again only causes a warning.
        needed: whether the order matters; nothing is checked if not.
    """

    def __init__(self, source: Input, scan: TableScan, needed: bool = True) -> None:
        self._source, self._scan, self._needed = source, scan, needed
        self._last = b""
        # The sources of a stream must be hashed at once, because it cannot be read again.
        self._hashes_all = is_stream(source.path)
        self._before = tempfile.SpooledTemporaryFile(_IN_MEMORY) if self._hashes_all else None  # noqa: SIM115
        # Read by several threads; once it is False, the hashes of every block are needed.
        self._ascends = True
        self._seen: KeyedSums[np.int32] = KeyedSums(np.int32)
        self._told = False
        self._pending: DataError | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Another process only examines single blocks.
        return {**self.__dict__, "_before": None, "_seen": None, "_pending": None, "_told": False}

    def __del__(self) -> None:
        if self._before:
            self._before.close()

    def look(self, raw: RawBlock, fields: Fields) -> SourceLook | None:
        """Return the sources of a block; None if the order does not matter.  May be called by several threads."""
        if not self._needed or (self._told and not self._pending):
            return None
        first, last = b"", b""
        if fields.ascending:
            first, last = (_first_source(raw, lines) for lines in (range(raw.lines), reversed(range(raw.lines))))
        needs_hashes = self._hashes_all or not self._ascends or not fields.ascending
        return SourceLook(raw, fields, first, last, Hashed.of(raw, fields) if needs_hashes else None)

    def follow(self, results: Iterable[tuple[SourceLook | None, Result]]) -> Iterator[Result]:
        """Yield the results of blocks after checking the order of their sources.

        Args:
            results: results of all blocks, in order, each with its `SourceLook`.

        Raises:
            DataError: a source is not contiguous, the table has more than `FEW_LINES` lines, and `scan.force` is not
                set; or the table has changed when it is read again.
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
        """Return whether the first source of a block may follow the last one of the previous block."""
        return look.first == self._last if look.raw.continued else _steps_up(self._last, look.first)

    def _keep(self, hashes: HashArray) -> None:
        self._seen.add(hashes, np.ones(len(hashes), np.int32))

    def _all_before(self, entries: int) -> Iterator[HashArray]:
        """Yield hashes of the sources of the first entries, which all ascend; 0 for a line without a source."""
        if self._before:
            self._before.seek(0)
            while piece := self._before.read(_IN_MEMORY):
                yield np.frombuffer(piece, np.uint64)
            self._before.close()
            return
        entries_read = 0
        with Input(self._source.path, self._source.name) as source:
            raws = self._scan.raw_blocks(source) if entries else iter(())
            for raw in raws:
                rows = np.arange(min(raw.lines, entries - entries_read))
                yield side_keys(raw.text, raw.line_offsets, rows)[0]
                entries_read += len(rows)
                if entries_read == entries:
                    return
        if entries_read < entries:
            raise DataError(
                self._source.name, f"has {entries_read:,} lines now, but had {entries:,} when it was read before"
            )

    def _tell(self, raw: RawBlock, line: int) -> None:
        text = raw.text[raw.line_offsets[line] : raw.line_offsets[line + 1]].tobytes()
        source = single_spaced(text.partition(b"|||")[0].decode("utf-8", "replace"))
        if len(source) > _SHOWN_CHARACTERS:
            source = source[: _SHOWN_CHARACTERS - 3] + "..."
        message = (
            f"the source {source!r} occurs again after other sources; expected all entries of a source together, as in "
            "a table sorted with LC_ALL=C sort"
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
    """Yield each block of a table with its result, in order.

    Args:
        name: name of this pass through the table, if there are several.
        items: the blocks, each as the first element of a tuple with associated values.
        work: computes the result of a block, and examines its sources; called by `scan.threads` threads.
        order: check of the order of the sources.
        scan: settings for reading the table; with `finished`, stored results are reused.
        pass_over: called, by the same threads, with each block whose stored result is reused.

    Raises:
        DataError: as `SourceOrder.follow`, `FinishedWork.run` and `work`.
    """

    def work_with_block(item: Any) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
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
        return order.follow((scan.runner or run)(items, work_with_block, scan.threads))
    results = scan.finished.run(
        name, digest, items, work_with_block, scan.threads, lambda result: result[1][1], again, runner=scan.runner
    )
    return order.follow(results)


class SourceGroups:
    """All source groups of a table: for each, a hash, and the size in one byte."""

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
        """Return the number of groups whose source has an earlier group, and the line of the first one, from 1."""
        if not self._count:
            return 0, 0
        hashes = np.concatenate(self._hashes)
        self._hashes.clear()
        ordered = np.sort(hashes)
        repeated = np.unique(ordered[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)])
        if not len(repeated):
            return 0, 0
        positions = np.flatnonzero(np.isin(hashes, repeated))
        _, first = np.unique(hashes[positions], return_index=True)
        again = np.delete(positions, first)
        group = int(again[0])
        before = sum(int(size) for size in np.concatenate(self._sizes)[:group].astype(np.int64).tolist())
        before += sum(more for large, more in self._large.items() if large < group)
        return len(again), before + 1


@exact_kernel
def _open_prefixes(
    text: ByteArray, line_offsets: Int64Array, labelled: bool, hashes: Int64Array, lines: Int64Array, opened: Int64Array
) -> int:
    """Store in `hashes` the hash of every prefix of a source that the previous source does not have.

    Args:
        labelled: whether the last token of a source is its label, which is left out.
        lines: receives the line of each prefix.
        opened: receives the number of new prefixes of each line; -1 if the source is missing or the same as that of the
            previous line.

    Returns:
        The number of prefixes.
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
    """The prefixes of the sources of a table, in words.

    Attributes:
        returning: number of prefixes that occur again after other sources.
        first: line of the first such prefix, from 1; 0 without one.
        sources: number of runs of lines with one source.
        keys: number of prefixes that CreateProbingPT stores for rules: each new prefix and each source, but only the
            source itself for the last source.
    """

    returning: int
    first: int
    sources: int
    keys: int

    @property
    def overfull(self) -> bool:
        """Whether the hash table of CreateProbingPT is too small for these rules."""
        return self.keys >= max(self.sources + 1, int(_PROBING_ROOM * self.sources))


def read_prefixes(source: Input, labelled: bool) -> SourcePrefixes:
    """Read a table again, and analyse the prefixes of its sources; this takes 16 bytes per prefix.

    Args:
        source: the table, at its beginning.
        labelled: see `_open_prefixes`.

    Raises:
        DataError: the file cannot be read.
    """
    hashes, lines, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    before = np.zeros(0, np.uint8)
    for raw in raw_blocks(source):
        # The line before the block is included, so that the border is also checked.
        ahead = int(len(before) > 0)
        text = np.concatenate([before, raw.text])
        offsets = np.concatenate([np.zeros(ahead, np.int64), raw.line_offsets + len(before)])
        prefix_hashes, prefix_lines = np.empty(len(text) // 2 + 1, np.int64), np.empty(len(text) // 2 + 1, np.int64)
        opened = np.empty(len(offsets) - 1, np.int64)
        count = _open_prefixes(text, offsets, labelled, prefix_hashes, prefix_lines, opened)
        new = prefix_lines[:count] >= ahead
        hashes.append(prefix_hashes[:count][new])
        lines.append(prefix_lines[:count][new] - ahead + raw.first_entry)
        keys.append(opened[ahead:][opened[ahead:] >= 0])
        before = text[offsets[-2] :].copy()
        if before[-1] != LF:
            before = np.append(before, LF)
    all_hashes, all_lines, added = np.concatenate(hashes), np.concatenate(lines), np.concatenate(keys)
    _, firsts = np.unique(all_hashes, return_index=True)
    again = np.delete(all_lines, firsts)
    total = int(np.maximum(added[:-1], 1).sum()) + 1 if len(added) else 0
    return SourcePrefixes(len(again), int(again[0]) + 1 if len(again) else 0, len(added), total)
