"""`phrasetool binarize`."""

from __future__ import annotations

import os
import shlex

import click

from phrasetool_cli.shared.click_options import check_outputs, quiet_option, threads_option

_EXAMPLE = """\b
Example:
  phrasetool binarize small.gz --to compact -o small --reordering-table small.reordering.gz
  phrasetool binarize table.annotated.gz --to probing -o table.probing --moses-bin ~/mosesdecoder/bin
"""


class Factors(click.ParamType[tuple[int, int]]):
    """Two counts."""

    name = "n,m"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, int]:
        """Return the counts of both sides."""
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not two counts of factors, as in 1,2", param, context)
        return int(parts[0]), int(parts[1])


@click.command(epilog=_EXAMPLE)
@click.argument("table")
@click.option("--to", "kind", type=click.Choice(["compact", "probing", "ondisk"]), required=True,
              help="PhraseDictionaryCompact (processPhraseTableMin), ProbingPT (CreateProbingPT) or "
                   "PhraseDictionaryOnDisk (CreateOnDiskPt).")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="PATH",
              help="What to make: for compact a file, .minphr is added; else a folder.")  # fmt: skip
@click.option("--reordering-table", "reordering", multiple=True, metavar="FILE",
              help="Make the binary form of this reordering table too (processLexicalTableMin): a .minlexr beside "
                   "the output.  May be repeated.")  # fmt: skip
@click.option("--moses-bin", metavar="FOLDER", help="Where Moses' programs are.  [default: the PATH]")
@click.option("--table-limit", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="ondisk: keep this many entries of a source, by their third score; 0: all.")  # fmt: skip
@click.option("--factors", type=Factors(),
              help="Factors of a source and a target token, for ondisk and the ini.  "
                   "[default: as in the first lines]")  # fmt: skip
@click.option("--name", default="TranslationModel0", show_default=True, metavar="NAME",
              help="Name of the feature in the ini.")  # fmt: skip
@click.option("--extra", default="", metavar="ARGUMENTS",
              help="More arguments for the program, as in --extra '--log-prob'.")  # fmt: skip
@threads_option("Threads for sorting and for the programs that take a number.")
@quiet_option
def command(
    table: str, kind: str, output: str, reordering: tuple[str, ...], moses_bin: str | None, table_limit: int,
    factors: tuple[int, int] | None, name: str, extra: str, threads: int, quiet: bool,
) -> None:  # fmt: skip
    """Make a binary form of TABLE, a phrase table in text form, with the program of Moses that does it.

    The number of scores and all else that the program must be told is read from the table.  A table that is not sorted
    as Moses needs it is sorted on the way.  Prints the lines for the [feature] section of moses.ini.
    """
    from moses_compat.tables.binarize import BinarizeOptions, binarize, output_path, reordering_output_path
    from phrasetool_cli.shared.progress import TableProgress, say

    if "-" in (table, output, *reordering):
        raise click.UsageError("a binariser reads and writes files only, not standard input or output")
    try:
        arguments = shlex.split(extra)
    except ValueError as error:
        raise click.UsageError(f"--extra: {error}") from error
    check_outputs(
        [table, *reordering],
        [output_path(kind, output), *(reordering_output_path(output, path) for path in reordering)],
    )
    options = BinarizeOptions(kind, moses_bin, threads, table_limit, factors, arguments)
    size = os.path.getsize(table) if os.path.isfile(table) else 0
    with TableProgress("check", size, quiet) as progress:
        made = binarize(
            table, output, options, reordering, name, (lambda message: None) if quiet else say, progress
        )  # fmt: skip
    for binary in made:
        click.echo(binary.feature_line)
