"""`phrasetool remove-orphans`."""

from __future__ import annotations

from dataclasses import replace

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, output_option, table_options
from phrasetool_cli.progress import TableProgress, TerminalWatch
from phrasetool_cli.summaries import tell_orphans

_EXAMPLE = """\b
Example:
  phrasetool remove-orphans small.gz < reordering-table > small.reordering
  phrasetool remove-orphans demo-output/small.gz --reordering-table demo-output/engine/reordering.gz -o small.r.gz
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "Reordering table",
    click.option("--reordering-table", default="-", show_default=False, metavar="FILE",
                 help="Reordering table.  [default: -, standard input]"),
    output_option(),
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    table: str, reordering_table: str, output: str, threads: int, block_bytes: int, max_line: int, on_error: str,
    allow_empty: bool, force: bool, quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Remove reordering entries that a phrase table lacks.

    Keeps lines whose phrase pair is in TABLE, byte for byte and in order.  The two tables may be in different orders.
    TABLE is a phrase table that was pruned by any program, gzip or not; `phrasetool prune` can prune a reordering table
    itself (--reordering-table).
    """
    from moses_compat.files.streams import Input, Output
    from moses_compat.jobs.remove_orphans import remove_orphans, table_pairs
    from moses_compat.tables.blocks import TableScan
    from moses_compat.tables.opening import REORDERING_TABLE, check_plausible

    check_outputs([table, reordering_table], [output])
    document = json_document(json_file, [table, reordering_table], [output])
    scan = TableScan(
        on_error,
        threads,
        block_bytes,
        allow_empty=allow_empty,
        force=force,
        warn=TerminalWatch(quiet).warn,
        max_line=max_line,
    )
    with Input(table) as entries, Input(reordering_table) as source, Output(output) as destination:
        check_plausible(entries, scan)
        check_plausible(source, scan, REORDERING_TABLE)
        with TableProgress("phrase table", entries.size(), quiet) as progress:
            pairs = table_pairs(entries, replace(scan, progress=progress))
        with TableProgress("reordering table", source.size(), quiet) as progress:
            counts = remove_orphans(source, destination, pairs, replace(scan, progress=progress))
    document(counts.as_dict())
    if not quiet:
        tell_orphans(counts)
