"""Keep a reordering table in step with a phrase table: drop the lines of pairs that the phrase table no longer has.

Moses ignores superfluous lines of a reordering table, but a pair without a line is scored 0, the logarithm of 1, in
every orientation, which is a reward.  So no line of a kept pair may be lost, whatever the order of the two tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_compat.files.streams import Input, Output
from moses_compat.lines.hashes import PairSet, hash_pairs, read_pair_hashes
from moses_compat.lines.insert_scores import selected_lines
from moses_compat.tables.blocks import RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import LF
from phrasetool.phrases import Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray


@dataclass
class OrphanCounts:
    """Counts of a reordering table.

    Attributes:
        lines: lines read, including malformed ones.
        kept: lines written.
        orphans: lines that were removed because the phrase table lacks their pair.
        malformed_kept, malformed_skipped: malformed lines that were kept or skipped.
        newline_added: whether a missing last line feed was added (Moses would not load the line without it).
        pairs: distinct pairs of the phrase table.
        pairs_without_line: distinct pairs without a line in the output.
    """

    lines: int = 0
    kept: int = 0
    orphans: int = 0
    malformed_kept: int = 0
    malformed_skipped: int = 0
    newline_added: bool = False
    pairs: int = 0
    pairs_without_line: int = 0

    def __iadd__(self, other: OrphanCounts) -> OrphanCounts:
        """Add the counts of a block; those of pairs are only known at the end."""
        self.lines += other.lines
        self.kept += other.kept
        self.orphans += other.orphans
        self.malformed_kept += other.malformed_kept
        self.malformed_skipped += other.malformed_skipped
        self.newline_added |= other.newline_added
        return self

    def as_dict(self) -> dict[str, int]:
        """Return the counts as JSON values."""
        return {name: int(value) for name, value in self.__dict__.items()}


def table_pairs(source: Input, scan: TableScan) -> PairSet:
    """Return the pairs of a phrase table, sorted or not; fields after the target are ignored.

    Args:
        scan: settings for reading the table; unless `on_error` is `fail`, lines with fewer than three fields are
            skipped.

    Raises:
        DataError: the table is damaged, or has a line without a pair and `scan.on_error` is `fail`.
    """

    def work(raw: RawBlock) -> tuple[RawBlock, HashArray]:
        hashes = hash_pairs(raw.text, raw.line_offsets, np.ones(raw.lines, np.bool_))
        missing = np.flatnonzero(hashes == 0)
        if len(missing) and scan.on_error == "fail":
            line = int(missing[0])
            fields = raw.text[raw.line_offsets[line] : raw.line_offsets[line + 1]].tobytes().count(b"|||") + 1
            message = f"expected at least 3 fields separated by |||, found {fields}"
            raise DataError(source.name, message, raw.first_entry + line + 1)
        return raw, hashes

    parts = []
    for raw, hashes in run(raw_blocks(source, scan.block_bytes, scan.max_line, False), work, scan.threads):
        parts.append(hashes)
        scan.progress(raw.position, raw.first_entry + raw.lines)
    return PairSet(parts)


def remove_orphans(source: Input, output: Output, pairs: PairSet, scan: TableScan) -> OrphanCounts:
    """Write the lines of a reordering table whose pair is among `pairs`, byte-identical and in input order.

    The two tables may be in different orders, lack pairs, and contain duplicates.  A last line without a line feed,
    which Moses would not load, gets one.  This function replaces
    scripts/training/remove-orphan-phrase-pairs-from-reordering-table.perl, which needs both tables in one order.

    Args:
        source: lines `source ||| target ||| probabilities`, all with the same number of probabilities.
        pairs: pairs of the phrase table, not looked up before.
        scan: settings for reading the reordering table; malformed lines that are kept need no pair.

    Raises:
        DataError: the table is damaged, has a malformed line and `scan.on_error` is `fail`, or has no line of any pair.
    """

    def work(raw: RawBlock) -> tuple[RawBlock, bytes, OrphanCounts]:
        line_offsets, malformed, passes, hashes = _read(raw, source.name, scan)
        keep = pairs.find(hashes)
        keep |= passes & malformed
        counts = OrphanCounts(
            lines=raw.lines,
            kept=int(keep.sum()),
            orphans=int((passes & ~keep).sum()),
            malformed_kept=int((malformed & keep).sum()),
            malformed_skipped=int((malformed & ~keep).sum()),
        )
        text = selected_lines(raw.text, line_offsets, keep)
        if len(text) and text[-1] != LF:
            counts.newline_added = True
            text = np.append(text, LF)
        return raw, output.encode(text), counts

    total = OrphanCounts()
    for raw, data, counts in run(raw_blocks(source, scan.block_bytes, scan.max_line, False), work, scan.threads):
        output.write(data)
        total += counts
        scan.progress(raw.position, total.lines)
    total.pairs = len(pairs)
    total.pairs_without_line = pairs.never_found()
    if total.lines and total.pairs and total.pairs_without_line == total.pairs:
        message = (
            f"none of its {total.lines:,} lines belongs to one of the {total.pairs:,} pairs of the phrase table; are "
            "these tables of one model, with the same factors?"
        )
        scan.refuse(DataError(source.name, message, remedy="go on"))
    return total


def _read(raw: RawBlock, name: str, scan: TableScan) -> tuple[Int64Array, Mask, Mask, HashArray]:
    """Return the offsets of a block's lines, masks of malformed and of acceptable lines, and the hashes of pairs."""
    read = read_pair_hashes(raw.text, raw.lines, raw.scores)
    if read:
        return read[0], np.zeros(raw.lines, np.bool_), np.ones(raw.lines, np.bool_), read[1]
    block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
    if scan.on_error == "fail" and faults[0].entry == 0:
        first = block.text[: block.line_offsets[1]].tobytes()
        if first.count(b"|||") == 1:
            message = "expected source ||| target ||| probabilities, found 2 fields; a table conditioned on the source"
            raise DataError(name, f"{message} alone (-f) names no pairs, Moses can use it as it is", 1)
    passes = scan.passes(name, block.malformed, faults)
    return block.line_offsets, block.malformed, passes, hash_pairs(block.text, block.line_offsets, passes)
