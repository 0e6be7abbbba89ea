"""`phrasetool convert`."""

from __future__ import annotations

import click

from phrasetool_cli.checks import check_outputs
from phrasetool_cli.command import SectionedCommand
from phrasetool_cli.options import (
    json_document,
    json_option,
    quiet_option,
    refuse_open_folder,
    standard_output,
    threads_option,
)
from phrasetool_cli.progress import TableProgress, say
from phrasetool_cli.summaries import tell_parts

_EXAMPLE = """\b
Example:
  phrasetool convert phrase-table.gz -o phrase-table.parquet
  phrasetool convert demo-output/engine/phrase-table.gz -o demo-output/table.parquet
  phrasetool convert phrase-table.gz -o parts --part-entries 10000000
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@click.option("-o", "--output", required=True, metavar="FILE", callback=standard_output,
              help="Output file or folder; `-` is standard output.")  # fmt: skip
@click.option("--part-entries", type=click.IntRange(1), metavar="N",
              help="Write part files of about N entries into a folder.")  # fmt: skip
@threads_option()
@json_option
@quiet_option
def command(
    table: str, output: str, part_entries: int | None, threads: int, quiet: bool, json_file: str | None
) -> None:
    """Convert a table to Parquet, to text, or to part files.

    TABLE is a Moses phrase table in text form, or a Parquet file from this command.  The conversion is lossless: the
    text is restored byte for byte, whatever its formatting.  In Parquet, a line is a row with columns source, target,
    score_1, score_2, ..., alignment, count_target, count_source, count_joint, sparse, properties; the columns extra,
    scores_text, counts_text, tail and raw hold parts with unusual formatting.  Other programs may remove rows or add
    scores before the table is converted to text again.
    """
    from moses_compat.files.packing import packing_for
    from moses_compat.files.streams import Input, Output
    from moses_compat.tables.parquet import is_parquet, parquet_to_table, table_to_parquet
    from phrasetool.errors import PhraseToolError

    if part_entries is not None:
        refuse_open_folder(output)
    check_outputs([table], [output], folders=part_entries is not None)
    document = json_document(json_file, [table], [output])
    if part_entries is not None:
        # Imported here, so that it does not delay other runs.
        from moses_compat.jobs.table_parts import document as part_document
        from moses_compat.jobs.table_parts import split_table

        with Input(table) as source, TableProgress("convert", source.size(), quiet) as progress:
            manifest = part_document(split_table(source, output, part_entries, progress))
        document(manifest)
        if not quiet:
            tell_parts(manifest, output)
        return
    to_text = is_parquet(table)
    if to_text and output.endswith(".parquet"):
        raise PhraseToolError(f"{table}: is Parquet already; expected a text file as output, not {output}")
    if not to_text and packing_for(output):
        raise PhraseToolError(f"{table}: is not Parquet; expected an output such as table.parquet, not {output}")
    if to_text:
        with Output(output) as destination, TableProgress("convert", 0, quiet) as progress:
            counts = parquet_to_table(table, destination, threads=threads, progress=progress)
    else:
        with (
            Input(table) as source,
            Output(output) as destination,
            TableProgress("convert", source.size(), quiet) as progress,
        ):
            counts = table_to_parquet(source, destination, threads=threads, progress=progress)
    document(vars(counts))
    if not quiet:
        whole = f"; {counts.kept_whole:,} lines kept whole" if counts.kept_whole else ""
        say(f"converted {counts.entries:,} entries of {counts.scores} scores{whole}")
