"""About how large a table is, as its beginning tells: to know what work on it will take before it is begun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.tables.blocks import raw_blocks
from moses_compat.tables.parser import scan_lines
from phrasetool.kernels.bytes import SPACE

# Bytes of text that are looked at.
_LOOKED_AT = 1 << 23


@dataclass(frozen=True)
class TableSize:
    """What a table holds.

    Attributes:
        entries: its lines.
        words: of their sources and targets, that of each entry counted.
    """

    entries: int
    words: int


def size_of_table(source: Input) -> TableSize:
    """Exact for a table of a few megabytes; of a larger one, more of the same is taken for granted.

    Args:
        source: the table, read from its beginning.

    Raises:
        DataError: the table is damaged.
    """
    entries = words = size = 0
    share = 1.0
    for raw in raw_blocks(source, _LOOKED_AT // 4):
        scan = scan_lines(raw.text, line_offsets=raw.line_offsets)
        blanks = np.append(0, np.cumsum(raw.text == SPACE))
        starts, ends = scan.line_offsets[:-1], scan.target_ends
        # One behind each word, and one behind the bars.
        words += int(np.maximum(blanks[ends] - blanks[starts] - 1, 0)[ends >= 0].sum())
        entries += raw.lines
        size += len(raw.text)
        if size >= _LOOKED_AT:
            share = max(source.size() / max(raw.position, 1), 1.0)
            break
    return TableSize(int(entries * share), int(words * share))
