"""What every way of `phrasetool prune` writes and says."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moses_compat.files.streams import Input, Output
    from moses_compat.jobs.reasons import ReasonsWriter
    from moses_compat.jobs.sinks import TableWriter
    from moses_compat.lines.pair_hashes import HashArray
    from moses_compat.measures.saved_similarities import ScoreWriter
    from moses_compat.tables.blocks import TableScan
    from moses_compat.tables.orphans import OrphanCounts
    from phrasetool.pruning.statistics import PruneStatistics
    from phrasetool_cli.shared.prune_options import PruneRequest

# What the statistics call an entry that went.
_CRITERION = "below_threshold"


def write_tables(
    request: PruneRequest,
    prune: Callable[[Input, TableWriter, TableScan, ScoreWriter | None], PruneStatistics],
    *,
    signature: str,
    criteria: tuple[str, ...],
    score_writer: Callable[[], ScoreWriter] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write the tables, and what else was asked for; all of it appears, or nothing.

    Args:
        prune: sends the table through a writer.
        signature: the line that says how it was done.
        criteria: their names.
        score_writer: opens a file for similarities, which appears with the tables or not at all.
        figures: more for the statistics.
    """
    from moses_compat.files.streams import Input, Output
    from moses_compat.jobs.sinks import TableWriter
    from phrasetool_cli.shared.progress import TableProgress

    scan = request.scan()
    reordering: Input | None = None
    orphans: OrphanCounts | None = None
    with contextlib.ExitStack() as stack:

        def opened(path: str | None) -> Output | None:
            return stack.enter_context(Output(path)) if path else None

        source = stack.enter_context(Input(request.table))
        if request.reordering_table:
            reordering = stack.enter_context(Input(request.reordering_table))
        # The last one opened is the first one renamed: the table itself must be the last to appear.
        destination = stack.enter_context(Output(request.output))
        in_step, rejected, report, why = map(
            opened, (request.reordering_out, request.rejected, request.stats, request.reasons)
        )
        reasons = stack.enter_context(_reasons(why, criteria)) if why else None
        save = stack.enter_context(score_writer()) if score_writer else None
        surviving: list[HashArray] | None = [] if reordering else None
        with TableProgress("prune", source.size(), request.quiet) as progress:
            writer = TableWriter(destination, _CRITERION, rejected, surviving, reasons)
            counts = prune(source, writer, replace(scan, progress=progress), save)
        if reordering and in_step and surviving is not None:
            orphans = _in_step(reordering, in_step, surviving, scan, request.quiet)
        if report:
            done = {**counts.as_dict(signature), **(figures or {})}
            if orphans:
                done["reordering"] = orphans.as_dict()
            report.write((json.dumps(done, indent=2) + "\n").encode())
    if not request.quiet:
        _tell(counts, orphans, signature, len(criteria))


def _reasons(output: Output, criteria: tuple[str, ...]) -> ReasonsWriter:
    from moses_compat.jobs.reasons import ReasonsWriter

    return ReasonsWriter(output, criteria)


def _in_step(source: Input, output: Output, surviving: list[HashArray], scan: TableScan, quiet: bool) -> OrphanCounts:
    """Write the reordering table of the surviving pairs."""
    from moses_compat.lines.pair_hashes import PairSet
    from moses_compat.tables.orphans import remove_orphans
    from phrasetool_cli.shared.progress import TableProgress

    pairs = PairSet(surviving)
    surviving.clear()
    with TableProgress("reordering table", source.size(), quiet) as progress:
        return remove_orphans(
            source, output, pairs,
            on_error=scan.on_error, threads=scan.threads, block_bytes=scan.block_bytes, progress=progress,
        )  # fmt: skip


def _tell(counts: PruneStatistics, orphans: OrphanCounts | None, signature: str, criteria: int) -> None:
    """The summary."""
    from phrasetool_cli.commands.remove_orphans import tell_orphans
    from phrasetool_cli.shared.progress import say

    share = counts.kept / counts.entries if counts.entries else 1.0
    say(f"kept {counts.kept:,} of {counts.entries:,} entries ({share:.1%}) of {counts.sources:,} sources")
    if criteria > 1:
        for label, count in sorted(counts.removed_by.items()):
            say(f"  {count:,} went by {_by(label)}")
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


def _by(label: str) -> str:
    """Which criteria a label of `Reasons.labels` names."""
    from phrasetool.pruning.reasons import TOGETHER

    names = label.split("+")
    if label == TOGETHER:
        return "all criteria together: none would have removed them by itself"
    if len(names) == 1:
        return f"{label}: no other criterion would have removed them by itself"
    return f"each of {', '.join(names[:-1])} and {names[-1]}"
