"""`phrasetool threshold-filter`."""

from __future__ import annotations

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, output_option, sort_option, table_options
from phrasetool_cli.progress import TerminalWatch, say

_EXAMPLE = """\b
Example:
  phrasetool threshold-filter 2:0.0001 < phrase-table > small
  phrasetool threshold-filter 0:0.001,2:0.01 --keep-words demo-output/engine/phrase-table.gz -o small.gz
"""


def _parse(context: click.Context, parameter: click.Parameter, value: str) -> dict[int, float]:
    from moses_compat.jobs.moses_filters import parse_thresholds

    try:
        return parse_thresholds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("thresholds", metavar="SPEC", callback=_parse)
@click.argument("table", default="-")
@sections(
    "Pruning criteria",
    click.option("--keep-words", is_flag=True,
                 help="Keep the best entry of a word that would lose all."),
    "Output",
    output_option(),
    "Reading",
    sort_option,
    None,
    json_option,
    table_options,
)  # fmt: skip
def command(
    thresholds: dict[int, float], table: str, output: str, keep_words: bool, threads: int, block_bytes: int,
    max_line: int,
    on_error: str, allow_empty: bool, force: bool, sort: bool, quiet: bool, json_file: str | None,
) -> None:  # fmt: skip
    """Remove entries whose scores are too low.

    Removes an entry of TABLE if any score is below its threshold, as Moses' threshold-filter.perl does.  SPEC is
    COLUMN:THRESHOLD,... with columns from 0, or one number for columns 0 and 2, p(f|e) and p(e|f).  Remaining lines are
    byte-identical and in order.
    """
    from moses_compat.files.streams import Output
    from moses_compat.jobs.moses_filters import threshold_table
    from moses_compat.tables.blocks import TableScan
    from moses_compat.tables.opening import open_table

    check_outputs([table], [output])
    document = json_document(json_file, [table], [output])
    watch = TerminalWatch(quiet)
    scan = TableScan(
        on_error, threads, block_bytes, allow_empty=allow_empty, force=force, warn=watch.warn, max_line=max_line
    )
    with open_table(table, output, scan, watch, "filter", sort=sort) as (text, scan), Output(output) as out:
        counts = threshold_table(text, out, thresholds, scan, keep_words=keep_words)
    document(vars(counts))
    if not quiet:
        say(f"kept {counts.kept:,} of {counts.entries:,} entries ({counts.kept / max(counts.entries, 1):.1%})")
        if counts.protected:
            say(f"  {counts.protected:,} kept as the last entry of their word")
