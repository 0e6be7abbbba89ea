"""Read a table as numbered blocks of text, with marks by which a later pass recognises unchanged lines.

A block ends between two sources.  Lines with unchanged marks need not be parsed again.
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
# Longest line of a table; without a limit, a binary file might be read to its end as one line.
LONGEST_TABLE_LINE = 1 << 24
# Size of the largest group of entries of one source that is read as a whole; some ten million short entries.
LARGEST_GROUP = 1 << 28
# Called with the bytes of the file and the lines processed so far.
Progress = Callable[[int, int], None]
ON_ERROR = ("fail", "skip", "keep")
# Bits of `LineMarks.sources`: flag of the first source of a block, and mask of its number of words.
_FIRST = np.uint16(1 << 15)
_WORDS = np.uint16(_FIRST - 1)
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(k) for k in range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = (np.uint64(8 * k) for k in range(1, 8))


@exact_kernel
def last_group_start(text: ByteArray) -> int:
    """Return the start of the last source group of `text`, or 0 if it is the only one; its end may be missing."""
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
    """Return the start of the last (perhaps incomplete) line of `text` with a source; 0 if no such line precedes it."""
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
    """Split a table into blocks of about `size` bytes at the borders of source groups.

    A longer group makes its block longer, or is split at line ends if groups need not be whole.  The concatenation of
    the blocks is the input.  The end of a block depends only on the text from the block's beginning on.

    Raises:
        DataError: the file is damaged, or is certainly not a table in text form (see `files.kinds`), or has a line of
            more than `max_line` bytes, or, if groups must be whole, a group larger than `LARGEST_GROUP` and `size`.
    """
    return (text for text, _, _ in _pieces(source, size, max_line, whole_groups))


def _pieces(
    source: Input, size: int, max_line: int, whole_groups: bool
) -> Iterator[tuple[ByteArray, Int64Array, bool]]:
    """Yield blocks, the offsets of their lines, and whether each continues the group of the previous block."""
    kinds.refuse(source.name, source.peek(kinds.HEAD_BYTES))
    text = b""
    continued = False
    target_size, lines, largest = size, 0, max(size, LARGEST_GROUP)
    while True:
        if len(text) < target_size:
            text += source.read(target_size - len(text))
        examined = min(target_size, len(text))
        cut = last_group_start(np.frombuffer(text, np.uint8, examined)) if examined >= size else 0
        inside = 0
        if examined >= size and not cut and not whole_groups:
            # All lines so far belong to one group, so a split here continues it if its source is known.
            inside = _last_keyed_line(np.frombuffer(text, np.uint8, examined))
        cut = cut or inside
        if not cut and examined > largest:
            # A long run of lines without a source at the beginning need not belong to a group.
            keyed = text.find(BARS, 0, examined)
            cut = text.rfind(b"\n", 0, keyed if keyed >= 0 else examined) + 1
        if cut:
            piece = np.frombuffer(text, np.uint8, cut)
            offsets = line_offsets_of(piece)
            yield piece, offsets, continued
            lines += len(offsets) - 1
            text, target_size, continued = text[cut:], size, inside > 0
        elif examined < target_size:
            break
        else:
            # A complete line that is too long is reported when its block is examined.
            if len(text) - (text.rfind(b"\n") + 1) > max_line:
                raise _too_long(source, lines + text.count(b"\n"), max_line)
            if len(text) > largest:
                message = f"the entries of this source take more than {largest:,} bytes"
                raise DataError(source.name, message, lines + 1, remedy="larger groups")
            target_size = min(2 * target_size, largest + 1)
    if text:
        piece = np.frombuffer(text, np.uint8)
        yield piece, line_offsets_of(piece), continued


def _too_long(source: Input, before: int, max_line: int) -> DataError:
    return DataError(source.name, f"the line has more than {max_line:,} bytes", before + 1, remedy="longer lines")


@dataclass(frozen=True)
class RawBlock:
    """The text of consecutive source groups.

    Attributes:
        first_entry: 0-based number of its first line.
        line_offsets: int64, shape (N + 1,), the start of each line, and the end of the last.
        text: the bytes, uint8.
        scores: number of scores per entry, from the first valid line of the table; -1 before that line.
        position: (compressed) bytes of the file read so far.
        continued: whether it begins with further entries of the last source of the previous block.
    """

    first_entry: int
    line_offsets: Int64Array
    text: ByteArray
    scores: int
    position: int
    continued: bool = False

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.line_offsets) - 1


def raw_blocks(
    source: Input, size: int = BLOCK_BYTES, max_line: int = LONGEST_TABLE_LINE, whole_groups: bool = True
) -> Iterator[RawBlock]:
    """Read a table block by block; see `blocks`.

    Args:
        whole_groups: if False, a source group longer than a block is split into several blocks.
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
    """Return the number of scores of the first valid line; examines the first lines, then all."""
    head = text[: 1 << 14]
    last = np.flatnonzero(head == LF)
    count = count_scores(head[: last[-1] + 1]) if len(last) else -1
    return count if count >= 0 else count_scores(text)


@dataclass(frozen=True)
class TableScan:
    """Settings for reading a table.

    Attributes:
        on_error: handling of malformed lines: `fail` (stop with an error), `skip` (leave the line out) or `keep` (pass
            it through unchanged).
        threads: worker threads.
        block_bytes: approximate size of the text of a block.
        max_line: largest number of bytes of a line.
        progress: called with the bytes of the file and the entries processed so far.
        allow_empty: whether a table may have no line.
        force: whether failed sanity checks of the table are only warnings.
        warn: called with the messages of such checks.
        finished: stores results of blocks, so that interrupted work can be resumed; None to store nothing.
        runner: executes the work on blocks; threads if None.
        whole_groups: whether a block holds all entries of its sources, whatever their number.

    Raises:
        ValueError: `on_error` has another value.
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
        # Another process only needs the settings for reading lines.
        defaults = TableScan()
        kept_here = ("progress", "warn", "finished", "runner")
        return {**self.__dict__, **{name: getattr(defaults, name) for name in kept_here}}

    whole_groups: bool = True

    def __post_init__(self) -> None:
        if self.on_error not in ON_ERROR:
            raise ValueError(f"unknown action {self.on_error!r}; expected one of {', '.join(ON_ERROR)}")

    @property
    def settings(self) -> dict[str, str]:
        """The settings that stored results depend on, by name; see `FinishedWork`."""
        return {"on error": self.on_error, "size of blocks": str(self.block_bytes)}

    def raw_blocks(self, source: Input) -> Iterator[RawBlock]:
        """Yield the blocks of a table; see `raw_blocks`."""
        return raw_blocks(source, self.block_bytes, self.max_line, self.whole_groups)

    def refuse(self, error: DataError) -> None:
        """Raise the error of a failed check, or with `force` issue a warning."""
        raise_or_warn(error, self.force, self.warn)

    def refuse_empty(self, name: str, entries: int, written: int, content: str) -> None:
        """Reject an empty output, which might go unnoticed, unless forced.

        Args:
            name: name of the table in messages.
            entries: number of entries of the table; if it is 0, an empty table has already been accepted.
            written: number of items in the file.
            content: description of the items, with the options that select them.
        """
        if entries and not written:
            self.refuse(DataError(name, f"no {content}, so the output would be empty", remedy="go on"))

    def passes(self, name: str, malformed: Mask, faults: Sequence[Fault]) -> Mask:
        """Return a mask, shape (N,), of all valid lines, and of malformed ones if they are kept.

        Args:
            name: name of the table in messages.
            malformed: bool, shape (N,).
            faults: faults of these lines.

        Raises:
            DataError: a line is malformed and `on_error` is `fail`.
        """
        if faults and self.on_error == "fail":
            raise DataError(name, faults[0].message, faults[0].entry + 1)
        return ~malformed if self.on_error == "skip" else np.ones(len(malformed), np.bool_)


@inner_kernel
def _eight(text: ByteArray, place: int) -> np.uint64:
    """Return text[place:place + 8] as one number; compiled to one load, because no index can be negative."""
    i = np.uint64(place)
    return (
        np.uint64(text[i]) | np.uint64(text[i + _1]) << _8 | np.uint64(text[i + _2]) << _16
        | np.uint64(text[i + _3]) << _24 | np.uint64(text[i + _4]) << _32 | np.uint64(text[i + _5]) << _40
        | np.uint64(text[i + _6]) << _48 | np.uint64(text[i + _7]) << _56
    )  # fmt: skip


@borrowing_kernel
def _hash_lines(text: ByteArray, line_offsets: Int64Array, seed: int, hashes: npt.NDArray[np.uint32]) -> None:
    """Hash the bytes of each line, its length and the seed; never 0.

    Two hashes take turns at eight bytes each, because each has to wait for its multiplications.  The last eight bytes
    may overlap the previous ones; the length determines how far.
    """
    for line in range(len(hashes)):
        i, end = line_offsets[line], line_offsets[line + 1]
        first_hash, second_hash = mix(GOLDEN, end - i), mix(GOLDEN, seed)
        if end - i >= 8:
            while i + 16 <= end:
                first_hash, second_hash = mix(first_hash, _eight(text, i)), mix(second_hash, _eight(text, i + 8))
                i += 16
            if i + 8 <= end:
                first_hash = mix(first_hash, _eight(text, i))
            second_hash = mix(second_hash, _eight(text, end - 8))
        else:
            for k in range(i, end):
                first_hash = mix(first_hash, text[k])
        hashes[line] = max(np.uint32(mix(first_hash, second_hash) >> _32), np.uint32(1))


class LineMarks(NamedTuple):
    """Marks of N lines, by which they are recognised in a later pass.

    Attributes:
        pairs: uint32, shape (N,), fingerprints of source and target.
        lines: uint32, shape (N,), hashes of the line and of the number of scores; 0 for a line to be parsed again.
        sources: uint16, shape (N,): 0 if the source is that of the previous line; else its number of words, plus 2^15
            for the first line of a block, where the order relative to the previous source is not known.
    """

    pairs: npt.NDArray[np.uint32]
    lines: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, raw: RawBlock, block: EntryBlock) -> LineMarks:
        """Return the marks of a parsed block with fingerprints."""
        lines = hash_lines(raw)
        lines[block.malformed] = 0
        sources = np.zeros(len(block), np.uint16)
        heads, lengths = block.group_offsets[:-1], block.source_lengths
        sources[heads] = np.minimum(lengths, int(_WORDS))
        # A source without words, with too many words, or out of order is parsed again.
        lines[heads[(lengths == 0) | (lengths >= _WORDS) | (not block.ascending)]] = 0
        sources[:1] |= _FIRST
        if raw.continued:
            sources[:1] = 0
        return cls(block.fingerprints, lines, sources)

    def recognise(self, raw: RawBlock) -> EntryBlock | None:
        """Return the block without fields and words if it has exactly these lines, all valid; else None."""
        sources = self.sources
        # With other block borders than in the first pass, a block may begin within a source, or contain such a border.
        if len(sources) != raw.lines or not raw.lines or not sources[0] or (sources[1:] >= _FIRST).any():
            return None
        if not np.array_equal(hash_lines(raw), self.lines):
            return None
        heads = np.flatnonzero(sources)
        lengths = (sources[heads] & _WORDS).astype(np.int64)
        return block_without_fields(raw, np.append(heads, raw.lines), lengths, np.zeros(raw.lines, np.bool_), True)


def hash_lines(raw: RawBlock) -> npt.NDArray[np.uint32]:
    """Return hashes of each line and the number of scores of the table; uint32, shape (N,), never 0."""
    hashes = np.empty(raw.lines, np.uint32)
    _hash_lines(raw.text, raw.line_offsets, raw.scores, hashes)
    return hashes


def block_without_fields(
    raw: RawBlock, group_offsets: Int64Array, source_lengths: Int64Array, malformed: Mask, ascending: bool = False
) -> EntryBlock:
    """Return a block of lines of which only the groups are known."""
    nothing, no_phrases = np.zeros(0, np.int64), Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
    return EntryBlock(
        raw.first_entry, raw.text, raw.line_offsets, nothing, nothing, nothing, group_offsets, source_lengths,
        no_phrases, no_phrases, malformed, ascending=ascending,
    )  # fmt: skip


def count_entries(path: str) -> int:
    """Return the number of lines of a table.

    Raises:
        DataError: the file is damaged.
        PhraseToolError: the file cannot be read.
    """
    with Input(path) as source:
        return sum(raw.lines for raw in raw_blocks(source, whole_groups=False))
