"""What every way of `phrasetool prune` writes and says."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_compat.orphans import OrphanCounts
    from moses_compat.pair_set import HashArray
    from moses_compat.prune import TableScan
    from moses_compat.saved_scores import ScoreWriter
    from moses_compat.streams import Input, Output
    from moses_compat.table_writer import TableWriter
    from phrasetool.pruning.statistics import PruneStatistics


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    table: str
    output: str
    threshold: float | None
    sweep: list[float] | None
    target_size: float | None
    rejected: str | None
    stats: str | None
    scores: str | None
    reordering_table: str | None
    reordering_out: str | None
    quiet: bool


def write_tables(
    request: Request,
    scan: TableScan,
    criterion: str,
    signature: str,
    prune: Callable[[Input, TableWriter, TableScan, ScoreWriter | None], PruneStatistics],
    score_writer: Callable[[], ScoreWriter] | None = None,
) -> None:
    """Write the tables, and what else was asked for; all of it appears, or nothing.

    Args:
        criterion: its name in the statistics.
        signature: the line that says how it was done.
        prune: sends the table through a writer.
        score_writer: opens a file for similarities, which appears with the tables or not at all.
    """
    from moses_compat.streams import Input, Output
    from moses_compat.table_writer import TableWriter
    from phrasetool_cli.progress import TableProgress

    reordering: Input | None = None
    orphans: OrphanCounts | None = None
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(Input(request.table))
        if request.reordering_table:
            reordering = stack.enter_context(Input(request.reordering_table))
        # The last one opened is the first one renamed: the table itself must be the last to appear.
        destination = stack.enter_context(Output(request.output))
        in_step = stack.enter_context(Output(request.reordering_out)) if request.reordering_out else None
        rejected = stack.enter_context(Output(request.rejected)) if request.rejected else None
        report = stack.enter_context(Output(request.stats)) if request.stats else None
        save = stack.enter_context(score_writer()) if score_writer else None
        surviving: list[HashArray] | None = [] if reordering else None
        with TableProgress("prune", source.size(), request.quiet) as progress:
            writer = TableWriter(destination, criterion, rejected, surviving)
            counts = prune(source, writer, replace(scan, progress=progress), save)
        if reordering and in_step and surviving is not None:
            orphans = _in_step(reordering, in_step, surviving, scan, request.quiet)
        if report:
            figures = counts.as_dict(signature)
            if orphans:
                figures["reordering"] = orphans.as_dict()
            report.write((json.dumps(figures, indent=2) + "\n").encode())
    if not request.quiet:
        _tell(counts, orphans, signature)


def _in_step(source: Input, output: Output, surviving: list[HashArray], scan: TableScan, quiet: bool) -> OrphanCounts:
    """Write the reordering table of the surviving pairs."""
    from moses_compat.orphans import remove_orphans
    from moses_compat.pair_set import PairSet
    from phrasetool_cli.progress import TableProgress

    pairs = PairSet(surviving)
    surviving.clear()
    with TableProgress("reordering table", source.size(), quiet) as progress:
        return remove_orphans(
            source, output, pairs,
            on_error=scan.on_error, threads=scan.threads, block_bytes=scan.block_bytes, progress=progress,
        )  # fmt: skip


def _tell(counts: PruneStatistics, orphans: OrphanCounts | None, signature: str) -> None:
    """The summary."""
    from phrasetool_cli.progress import say
    from phrasetool_cli.remove_orphans import tell_orphans

    share = counts.kept / counts.entries if counts.entries else 1.0
    say(f"kept {counts.kept:,} of {counts.entries:,} entries ({share:.1%}) of {counts.sources:,} sources")
    notes = [
        (counts.protected, "below the threshold stayed as one of the best of their source"),
        (counts.without_opinion, "stayed because a side has only unknown words"),
        (counts.faulty_kept, "faulty lines were passed through"),
        (counts.faulty_skipped, "faulty lines were left out"),
    ]
    for count, meaning in notes:
        if count:
            say(f"  {count:,} {meaning}")
    if orphans:
        tell_orphans(orphans)
    say(f"signature {signature}")
