"""`phrasetool moses-ini`."""

from __future__ import annotations

import os

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.options import check_outputs

_EXAMPLE = """\b
Example:
  phrasetool moses-ini --table table.gz --reordering-table reordering.gz --lm lm.arpa.gz -o moses.ini
  phrasetool moses-ini moses.ini --table table.annotated.gz -o annotated.ini
"""


@click.command(short_help="Write a moses.ini, or change the table of one.", epilog=_EXAMPLE)
@click.argument("ini", required=False)
@click.option("--table", required=True, metavar="FILE", help="The phrase table.")
@click.option("--lm", "language_model", metavar="FILE", help="The language model, ARPA text.  Needed for a new ini.")
@click.option("--reordering-table", metavar="FILE", help="A reordering table, for a new ini.")
@click.option("--reordering-type", default="wbe-msd-bidirectional-fe-allff", show_default=True, metavar="TYPE",
              help="What the reordering table holds.")  # fmt: skip
@click.option("--distortion-limit", type=int, default=6, show_default=True, metavar="N", help="For a new ini.")
@click.option(
    "--weight", type=float, default=0.0, show_default=True, metavar="W",
    help="Start weight of columns that INI's table did not have; 0 leaves every translation as it was.",
)  # fmt: skip
@click.option("-o", "--output", default="-", metavar="FILE", help="The ini to write.  [default: standard output]")
def command(
    ini: str | None, table: str, language_model: str | None, reordering_table: str | None, reordering_type: str,
    distortion_limit: int, weight: float, output: str,
) -> None:  # fmt: skip
    """Write a moses.ini with default weights for a table; or, given INI, name another table in it.

    The number of scores is read from the table.  Nothing else of INI changes: comments, order, unknown sections.
    """
    from moses_compat.arpa import read_order
    from moses_compat.moses_ini import ENCODING, new_moses_ini, read_moses_ini
    from moses_compat.streams import Input, Output
    from moses_compat.table_blocks import raw_blocks

    check_outputs([table], [output])
    with Input(table) as source:
        columns = next((block.scores for block in raw_blocks(source)), -1)
    if columns < 0:
        raise PhraseToolError(f"{table}: holds no phrase-table entry")
    if ini is not None:
        there = read_moses_ini(ini).moved_to(os.path.dirname(output))
        text = there.with_table(os.path.abspath(table), columns, weight)
    else:
        if language_model is None:
            raise click.UsageError("a new moses.ini needs --lm")
        with Input(language_model) as source:
            order = read_order(source)
        text = new_moses_ini(
            os.path.abspath(table), columns, os.path.abspath(language_model), order,
            os.path.abspath(reordering_table) if reordering_table else None, reordering_type, distortion_limit,
        )  # fmt: skip
    with Output(output) as out:
        out.write(text.encode(*ENCODING))
