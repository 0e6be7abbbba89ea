"""A table as numbered blocks of text: how it is read, and marks by which its lines are recognised.

A block ends between two sources.  Lines that were read once and have the same marks need not be parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.files import kinds
from moses_compat.files.finished_work import FinishedWork
from moses_compat.files.streams import Input
from moses_compat.lines.fields import BARS, find_separator, line_offsets_of, same_tokens
from moses_compat.tables.parser import Fault, count_scores
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF
from phrasetool.kernels.hashing import GOLDEN, mix
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel, inner_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array, Mask, Phrases
from phrasetool.pipeline import Runner
from phrasetool.watch import raise_or_warn

BLOCK_BYTES = 1 << 21
# A line longer than that is none of a table; without a limit, what is no text would be read as one line, to its end.
LONGEST_TABLE_LINE = 1 << 24
# The entries of a source that are needed together, where blocks are not larger; some ten million short ones.
LARGEST_GROUP = 1 << 28
# Called with the bytes of the file consumed and the lines done so far.
Progress = Callable[[int, int], None]
ON_ERROR = ("fail", "skip", "keep")
# In `LineMarks.sources`: the first source of a block; and the words of one.
_FIRST = np.uint16(1 << 15)
_WORDS = np.uint16(_FIRST - 1)
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(k) for k in range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = (np.uint64(8 * k) for k in range(1, 8))


@exact_kernel
def last_group_start(text: ByteArray) -> int:
    """Where the last source group of `text` begins (its last line may be incomplete), or 0 if there is but one."""
    line_end = len(text)
    group = -1
    group_end = -1
    while line_end > 0:
        start = line_end - 1 if text[line_end - 1] == LF else line_end
        while start > 0 and text[start - 1] != LF:
            start -= 1
        field_end = find_separator(text, start, line_end)
        if field_end >= 0:
            if group >= 0 and not same_tokens(text, start, field_end, group, group_end):
                return group
            group = start
            group_end = field_end
        line_end = start
    return 0


@exact_kernel
def _last_keyed_line(text: ByteArray) -> int:
    """Where the last line of `text` with a source begins (it may be incomplete), or 0 if there is none before it."""
    line_end = len(text)
    last = -1
    while line_end > 0:
        start = line_end - 1 if text[line_end - 1] == LF else line_end
        while start > 0 and text[start - 1] != LF:
            start -= 1
        if find_separator(text, start, line_end) >= 0:
            if last >= 0:
                return last
            last = start
        line_end = start
    return 0


def blocks(
    source: Input, size: int, max_line: int = LONGEST_TABLE_LINE, whole_groups: bool = True
) -> Iterator[ByteArray]:
    """Cut a table into blocks of about `size` bytes at source-group borders.

    A group longer than that makes its block longer, or is cut at line ends where groups need not be whole.  The
    concatenation of the blocks is the input.  Where a block ends depends on what follows its beginning alone.

    Raises:
        DataError: the file is damaged, or is certainly no table in text form (see `files.kinds`), or has a line of more
            than `max_line` bytes, or, where groups are to be whole, a group of more than `LARGEST_GROUP` and `size`.
    """
    return (text for text, _, _ in _pieces(source, size, max_line, whole_groups))


def _pieces(
    source: Input, size: int, max_line: int, whole_groups: bool
) -> Iterator[tuple[ByteArray, Int64Array, bool]]:
    """The blocks, where their lines begin, and whether each goes on with the group of the one before; with whole
    sources, none does."""
    kinds.refuse(source.name, source.peek(kinds.HEAD_BYTES))
    text = b""
    continued = False
    wanted, lines, largest = size, 0, max(size, LARGEST_GROUP)
    while True:
        if len(text) < wanted:
            text += source.read(wanted - len(text))
        seen = min(wanted, len(text))
        cut = last_group_start(np.frombuffer(text, np.uint8, seen)) if seen >= size else 0
        inside = 0
        if seen >= size and not cut and not whole_groups:
            # All lines so far are of one group, so the next is, too, if its source is known.
            inside = _last_keyed_line(np.frombuffer(text, np.uint8, seen))
        cut = cut or inside
        if not cut and seen > largest:
            # So many lines of no source, before any that has one, may as well belong to none.
            keyed = text.find(BARS, 0, seen)
            cut = text.rfind(b"\n", 0, keyed if keyed >= 0 else seen) + 1
        if cut:
            piece = np.frombuffer(text, np.uint8, cut)
            offsets = line_offsets_of(piece)
            yield piece, offsets, continued
            lines += len(offsets) - 1
            text, wanted, continued = text[cut:], size, inside > 0
        elif seen < wanted:
            break
        else:
            # A long line that is whole is found when its block is looked at.
            if len(text) - (text.rfind(b"\n") + 1) > max_line:
                raise _too_long(source, lines + text.count(b"\n"), max_line)
            if len(text) > largest:
                message = f"the entries of this source take more than {largest:,} bytes"
                raise DataError(source.name, message, lines + 1, remedy="larger groups")
            wanted = min(2 * wanted, largest + 1)
    if text:
        piece = np.frombuffer(text, np.uint8)
        yield piece, line_offsets_of(piece), continued


def _too_long(source: Input, before: int, max_line: int) -> DataError:
    return DataError(source.name, f"the line has more than {max_line:,} bytes", before + 1, remedy="longer lines")


@dataclass(frozen=True)
class RawBlock:
    """The text of a run of source groups, which are whole unless asked for otherwise.

    Attributes:
        first_entry: 0-based number of its first line.
        line_offsets: int64, shape (N + 1,), where each of its lines begins, and the end.
        text: the bytes, uint8.
        scores: how many scores an entry of this table has, as its first good line says; -1 if none came yet.
        position: bytes of the file consumed so far (compressed, if it is gzip).
        continued: whether it begins with more entries of the last source of the block before.
    """

    first_entry: int
    line_offsets: Int64Array
    text: ByteArray
    scores: int
    position: int
    continued: bool = False

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.line_offsets) - 1


def raw_blocks(
    source: Input, size: int = BLOCK_BYTES, max_line: int = LONGEST_TABLE_LINE, whole_groups: bool = True
) -> Iterator[RawBlock]:
    """Read a table block by block; see `blocks`.

    Args:
        whole_groups: if not, a source group that is longer than a block is cut into several.
    """
    first_entry = 0
    scores = -1
    for text, offsets, continued in _pieces(source, size, max_line, whole_groups):
        if scores < 0:
            scores = _first_score_count(text)
        if len(text) > max_line and (long := np.diff(offsets) > max_line).any():
            raise _too_long(source, first_entry + int(np.argmax(long)), max_line)
        block = RawBlock(first_entry, offsets, text, scores, source.position(), continued)
        yield block
        first_entry += block.lines


def _first_score_count(text: ByteArray) -> int:
    """Look at the first lines, then at all."""
    head = text[: 1 << 14]
    last = np.flatnonzero(head == LF)
    count = count_scores(head[: last[-1] + 1]) if len(last) else -1
    return count if count >= 0 else count_scores(text)


@dataclass(frozen=True)
class TableScan:
    """How a table is read.

    Attributes:
        on_error: what happens to a line that cannot be read as an entry: `fail` (stop with an error), `skip` (leave the
            line out) or `keep` (pass it through unchanged).
        threads: worker threads.
        block_bytes: about how much text is worked on at a time.
        max_line: bytes that a line may have.
        progress: called with the bytes of the file consumed and the entries done so far.
        allow_empty: whether a table may have no line.
        force: whether to go on where a check says that the table makes no sense.
        warn: called with what such a check says.
        finished: keeps what was made of the blocks, so that interrupted work goes on; nothing if None.
        runner: has the blocks worked on; threads if None.
        whole_groups: whether a block holds all entries of its sources, however many these are.

    Raises:
        ValueError: `on_error` is something else.
    """

    on_error: str = "fail"
    threads: int = 1
    block_bytes: int = BLOCK_BYTES
    progress: Progress = lambda position, entries: None
    allow_empty: bool = False
    force: bool = False
    warn: Callable[[str], None] = lambda message: None
    finished: FinishedWork | None = None
    max_line: int = LONGEST_TABLE_LINE
    runner: Runner | None = None

    def __getstate__(self) -> dict[str, Any]:
        # In another process it says how to take lines, and no more.
        alone = TableScan()
        kept_here = ("progress", "warn", "finished", "runner")
        return {**self.__dict__, **{name: getattr(alone, name) for name in kept_here}}

    whole_groups: bool = True

    def __post_init__(self) -> None:
        if self.on_error not in ON_ERROR:
            raise ValueError(f"unknown action {self.on_error!r}; expected one of {', '.join(ON_ERROR)}")

    @property
    def settings(self) -> dict[str, str]:
        """Name -> value of what finished work depends on; see `FinishedWork`."""
        return {"on error": self.on_error, "size of blocks": str(self.block_bytes)}

    def raw_blocks(self, source: Input) -> Iterator[RawBlock]:
        """The blocks of a table; see `raw_blocks`."""
        return raw_blocks(source, self.block_bytes, self.max_line, self.whole_groups)

    def refuse(self, error: DataError) -> None:
        """Raise what a check of the table found, or with `force` warn of it."""
        raise_or_warn(error, self.force, self.warn)

    def refuse_empty(self, name: str, entries: int, written: int, wanted: str) -> None:
        """Refuse to write a file without content, which nobody would notice, unless forced.

        Args:
            name: of the table.
            entries: of the table; an empty table was accepted before.
            written: how much the file holds.
            wanted: what it was to hold, with the options that decide.
        """
        if entries and not written:
            self.refuse(DataError(name, f"no {wanted}, so the output would be empty", remedy="go on"))

    def passes(self, name: str, faulty: Mask, faults: Sequence[Fault]) -> Mask:
        """bool, shape (N,): all good lines, and the faulty ones if they are kept.

        Args:
            name: the table, as messages call it.
            faulty: bool, shape (N,).
            faults: of these lines.

        Raises:
            DataError: there is a faulty line and the scan says `fail`.
        """
        if faults and self.on_error == "fail":
            raise DataError(name, faults[0].message, faults[0].entry + 1)
        return ~faulty if self.on_error == "skip" else np.ones(len(faulty), np.bool_)


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


def count_entries(path: str) -> int:
    """Return the number of lines of a table.

    Raises:
        DataError: the file is damaged.
        PhraseToolError: it cannot be read.
    """
    with Input(path) as source:
        return sum(raw.lines for raw in raw_blocks(source, whole_groups=False))
