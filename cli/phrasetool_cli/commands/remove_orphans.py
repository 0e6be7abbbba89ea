"""`phrasetool remove-orphans`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.click_options import check_outputs, table_options

if TYPE_CHECKING:
    from moses_compat.tables.orphans import OrphanCounts

_EXAMPLE = """\b
Example:
  phrasetool remove-orphans small.gz < reordering-table > small.reordering
  phrasetool remove-orphans demo-output/small.gz --reordering-table demo-output/engine/reordering.gz -o small.r.gz
"""


@click.command(epilog=_EXAMPLE)
@click.argument("table")
@click.option("--reordering-table", default="-", metavar="FILE",
              help="The reordering table, gzip or not.  [default: standard input]")  # fmt: skip
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write.  [default: standard output]")
@table_options
def command(
    table: str, reordering_table: str, output: str, threads: int, block_bytes: int, on_error: str, quiet: bool
) -> None:
    """Keep the lines of a reordering table whose phrase pair is in TABLE, byte for byte and in their order.

    The two tables may be in different orders.  TABLE is a phrase table that was pruned by whatever means, gzip or
    not; what prune itself removes it can take out of a reordering table on the way (prune --reordering-table).
    """
    from moses_compat.files.streams import Input, Output
    from moses_compat.tables.orphans import remove_orphans, table_pairs
    from phrasetool_cli.shared.progress import TableProgress

    if table == reordering_table == "-":
        raise click.UsageError("the phrase table and the reordering table cannot both come from standard input")
    check_outputs([table, reordering_table], [output])
    with (
        Input(table) as entries,
        Input(reordering_table) as source,
        Output(output) as destination,
    ):
        with TableProgress("phrase table", entries.size(), quiet) as progress:
            pairs = table_pairs(entries, on_error=on_error, threads=threads, block_bytes=block_bytes, progress=progress)
        with TableProgress("reordering table", source.size(), quiet) as progress:
            counts = remove_orphans(
                source, destination, pairs,
                on_error=on_error, threads=threads, block_bytes=block_bytes, progress=progress,
            )  # fmt: skip
    if not quiet:
        tell_orphans(counts)


def tell_orphans(counts: OrphanCounts) -> None:
    """The summary of a reordering table."""
    from phrasetool_cli.shared.progress import say

    share = counts.kept / counts.lines if counts.lines else 1.0
    say(f"kept {counts.kept:,} of {counts.lines:,} reordering lines ({share:.1%})")
    notes = [
        (counts.orphans, "were left out because the phrase table lacks their pair"),
        (counts.faulty_kept, "faulty lines were passed through"),
        (counts.faulty_skipped, "faulty lines were left out"),
    ]
    for count, meaning in notes:
        if count:
            say(f"  {count:,} {meaning}")
    if counts.newline_added:
        say("  the last line had no line feed, so Moses did not load it; it has one now")
    if counts.pairs_without_line == counts.pairs and counts.pairs and counts.lines:
        say("warning: no pair of the phrase table has a line; are these tables of one model, with the same factors?")
    elif counts.pairs_without_line:
        say(
            f"warning: {counts.pairs_without_line:,} of {counts.pairs:,} pairs of the phrase table have no reordering "
            "line; Moses scores them 0, better than any pair that has one"
        )
