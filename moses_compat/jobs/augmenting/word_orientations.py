"""What a reordering table says of single words on the whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.jobs.augmenting.new_lines import TEXT
from moses_compat.jobs.augmenting.word_table import of_one_word
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.text_splitting import single_spaced

# Sums of whole numbers do not depend on how the table is cut.
_UNITS = 10**9


def word_orientations(source: Input, known: Collection[str], table: str, scan: TableScan) -> DoubleArray:
    """The mean probability of each orientation over all entries whose source is one word.

    Moses gives an entry that its reordering table lacks no score at all, which is better than any that an entry has.

    Args:
        source: a reordering table, at its beginning.
        known: the words that are sources of the phrase table.
        table: the phrase table, as messages call it.
        scan: how it is read.

    Returns:
        float64, shape (S,), of S scores.

    Raises:
        DataError: the table is damaged, has a faulty line and the scan says `fail`, has no such entry, or none whose
            source is in the phrase table.
    """
    shared = False

    def work(raw: RawBlock) -> tuple[RawBlock, Int64Array, int]:
        parser = TableParser(scores=raw.scores, columns=range(max(raw.scores, 0)))
        block, faults = parser(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.faulty, faults)
        single = of_one_word(block)
        nonlocal shared
        shared = shared or _any_known(raw, np.flatnonzero(single).tolist(), known)
        units = np.rint(_UNITS * np.clip(block.columns[single], 0, 1)).astype(np.int64)
        return raw, units.sum(0), int(single.sum())

    total, count, done = np.zeros(0, np.int64), 0, 0
    # Lines of a source need not be together for a mean.
    for raw, sums, words in run(replace(scan, whole_groups=False).raw_blocks(source), work, scan.threads):
        total = total + sums if len(total) else sums
        count += words
        done += raw.lines
        scan.progress(raw.position, done)
    if not count:
        raise DataError(source.name, "has no entry whose source is one word")
    if not shared:
        message = f"none of its sources of one word is in {table}; expected the reordering table of its model"
        scan.refuse(DataError(source.name, message, remedy="go on"))
    return np.asarray(total / (count * _UNITS))


def _any_known(raw: RawBlock, rows: Sequence[int], known: Collection[str]) -> bool:
    lines = (raw.text[raw.line_offsets[row] : raw.line_offsets[row + 1]].tobytes() for row in rows)
    return any(single_spaced(line.partition(b"|||")[0]).decode(*TEXT) in known for line in lines)
