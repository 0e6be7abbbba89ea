"""`phrasetool binarize`."""

from __future__ import annotations

import os
import shlex

import click

from phrasetool_cli.checks import check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import json_document, json_option, quiet_option, threads_option
from phrasetool_cli.parameter_types import factor_counts
from phrasetool_cli.progress import TableProgress, TerminalWatch

_EXAMPLE = """\b
Example:
  phrasetool binarize small.gz --to compact -o small --reordering-table small.reordering.gz
  phrasetool binarize table.annotated.gz --to probing -o table.probing --moses-bin ~/mosesdecoder/bin
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("table")
@sections(
    "Output",
    click.option("--to", "kind", type=click.Choice(["compact", "probing", "ondisk"]), required=True,
                 help="PhraseDictionaryCompact, ProbingPT or PhraseDictionaryOnDisk."),
    click.option("-o", "--output", required=True, metavar="PATH",
                 help="Output file (compact; .minphr is added) or folder."),
    click.option("--reordering-table", "reordering", multiple=True, metavar="FILE",
                 help="Convert this reordering table, too (.minlexr); repeatable."),
    click.option("--table-limit", type=click.IntRange(0), default=0, metavar="N",
                 help="Keep the N best entries of a source (ondisk); 0: all."),
    click.option("--factors", type=factor_counts, metavar="N,M",
                 help="Factors of a source and a target token.  [default: from the table]"),
    click.option("--name", default="TranslationModel0", metavar="NAME", help="Feature name in the ini."),
    "Moses' programs",
    click.option("--moses-bin", metavar="FOLDER", help="Folder of Moses' programs.  [default: the PATH]"),
    click.option("--extra", default="", show_default=False, metavar="ARGUMENTS",
                 help="More arguments for the program, as in --extra '--log-prob'."),
    threads_option("Threads for sorting, and for programs that support several."),
    None,
    json_option,
    quiet_option,
)  # fmt: skip
def command(
    table: str, kind: str, output: str, reordering: tuple[str, ...], moses_bin: str | None, table_limit: int,
    factors: tuple[int, int] | None, name: str, extra: str, threads: int, quiet: bool,
    json_file: str | None,
) -> None:  # fmt: skip
    """Convert a table to a binary format with Moses' programs.

    TABLE is a phrase table in text form.  The number of scores and other arguments of the program are read from it.  If
    it is not sorted as Moses requires, a sorted copy is used.  Prints the lines for the [feature] section of moses.ini.
    """
    from moses_compat.ini.editing import writable_path
    from moses_compat.tables.binarize import BinarizeOptions, binarize, output_path, reordering_output_path

    if kind != "ondisk":
        refuse_unused({"table_limit": f"ondisk tables; the ini of a {kind} table has a limit of its own (table-limit)"})
    if "-" in (table, output, *reordering):
        raise click.UsageError("a binariser reads and writes files only, not standard input or output")
    try:
        arguments = shlex.split(extra)
    except ValueError as error:
        raise click.UsageError(f"--extra: {error}") from error
    check_outputs(
        [table, *reordering],
        [output_path(kind, output), *(reordering_output_path(output, path) for path in reordering)],
        folders=True,
    )
    for path in (output, *(reordering_output_path(output, path) for path in reordering)):
        writable_path(os.path.abspath(path))
    document = json_document(json_file, [table, *reordering], [output])
    options = BinarizeOptions(kind, moses_bin, threads, table_limit, factors, arguments)
    watch = TerminalWatch(quiet)
    size = os.path.getsize(table) if os.path.isfile(table) else 0
    with TableProgress("check", size, quiet) as progress:
        binaries = binarize(table, output, options, reordering, name, watch.say, watch.warn, progress)
    document({"features": [binary.feature_line for binary in binaries]})
    for binary in binaries if json_file != "-" else ():
        click.echo(binary.feature_line)
