"""A table as numbered blocks of text, and what to do about lines that are not entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.streams import Input, blocks
from moses_compat.table_text import Fault, count_scores
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, EntryBlock

BLOCK_BYTES = 1 << 21
# Called with the bytes of the file consumed and the lines done so far.
Progress = Callable[[int, int], None]
ON_ERROR = ("fail", "skip", "keep")
_LF = 10


@dataclass(frozen=True)
class RawBlock:
    """The text of a run of whole source groups.

    Attributes:
        index: from 0.
        first_entry: 0-based number of its first line.
        lines: how many lines it has.
        text: the bytes, uint8.
        scores: how many scores an entry of this table has, as its first good line says; -1 if none came yet.
        position: bytes of the file consumed so far (compressed, if it is gzip).
    """

    index: int
    first_entry: int
    lines: int
    text: ByteArray
    scores: int
    position: int


def raw_blocks(source: Input, size: int = BLOCK_BYTES) -> Iterator[RawBlock]:
    """Read a table block by block; see `streams.blocks`."""
    first_entry = 0
    scores = -1
    for index, text in enumerate(blocks(source, size)):
        if scores < 0:
            scores = _first_score_count(text)
        lines = int(np.count_nonzero(text == _LF)) + (text[-1] != _LF)
        yield RawBlock(index, first_entry, lines, text, scores, source.position())
        first_entry += lines


def _first_score_count(text: ByteArray) -> int:
    """Look at the first lines, then at all."""
    head = text[: 1 << 14]
    last = np.flatnonzero(head == _LF)
    count = count_scores(head[: last[-1] + 1]) if len(last) else -1
    return count if count >= 0 else count_scores(text)


@dataclass(frozen=True)
class FaultPolicy:
    """What happens to a line that cannot be read as an entry.

    Args:
        name: the table, as messages call it.
        action: `fail` (stop with an error), `skip` (leave the line out) or `keep` (pass it through unchanged).
    """

    name: str
    action: str = "fail"

    def __post_init__(self) -> None:
        if self.action not in ON_ERROR:
            raise ValueError(f"unknown action {self.action!r}; expected one of {', '.join(ON_ERROR)}")

    def keep_mask(self, block: EntryBlock, faults: Sequence[Fault]) -> npt.NDArray[np.bool_]:
        """bool, shape (N,): all good lines, and the faulty ones if they are kept.

        Raises:
            DataError: there is a faulty line and the action is `fail`.
        """
        if faults and self.action == "fail":
            raise DataError(self.name, faults[0].message, faults[0].entry + 1)
        return ~block.faulty if self.action == "skip" else np.ones(len(block), np.bool_)
