"""Prune a phrase table by what was decided about all its entries together."""

from __future__ import annotations

from moses_compat.files.streams import Input
from moses_compat.jobs.sinks import PrunedBlock, TableWriter, Verdict
from moses_compat.tables.blocks import FaultPolicy, RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.pipeline import run
from phrasetool.pruning.statistics import PruneStatistics


def prune_selected(source: Input, writer: TableWriter, verdict: Verdict, scan: TableScan) -> PruneStatistics:
    """Write the entries that were selected, byte for byte and in their order.

    Args:
        source: the table, read from its beginning.
        verdict: for all its N entries; `passes` is not looked at, faulty lines follow `scan.on_error`.

    Raises:
        DataError: the table is damaged, or is not the one that the verdict is about.
    """
    policy = FaultPolicy(source.name, scan.on_error)
    entries = len(verdict.fails)

    def work(raw: RawBlock) -> tuple[RawBlock, PrunedBlock]:
        last = raw.first_entry + raw.lines
        if last > entries:
            raise DataError(source.name, f"has more than the {entries:,} lines it had when it was measured", last)
        block, faults = TableParser(scores=raw.scores)(raw.index, raw.first_entry, raw.text)
        part = slice(raw.first_entry, last)
        here = verdict.part(part, policy.keep_mask(block, faults))
        return raw, writer.prepare(block, here)

    total = PruneStatistics()
    for raw, pruned in run(raw_blocks(source, scan.block_bytes), work, scan.threads):
        writer.write(pruned)
        total += pruned.statistics
        scan.progress(raw.position, total.entries)
    if total.entries != entries:
        raise DataError(source.name, f"has {total.entries:,} lines now, but had {entries:,} when it was measured")
    return total
