"""`phrasetool moses-ini`."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared.click_options import check_outputs

if TYPE_CHECKING:
    pass


class Weight(click.ParamType[Any]):
    """A finite number."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        """Return it."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, context)
        return number


weight_option = click.option(
    "--weight", type=Weight(), default=0.0, show_default=True, metavar="W",
    help="Start weight of columns that the table in the ini did not have; 0 leaves every translation as it was.",
)  # fmt: skip

_EXAMPLE = """\b
Example:
  phrasetool moses-ini --table table.gz --reordering-table reordering.gz --lm lm.arpa.gz -o moses.ini
  phrasetool moses-ini moses.ini --table table.annotated.gz -o annotated.ini
  phrasetool moses-ini moses.ini --table small.gz --reordering-table small.reordering.gz -o small.ini
"""


@click.command(epilog=_EXAMPLE)
@click.argument("ini", required=False)
@click.option("--table", required=True, metavar="FILE", help="The phrase table.")
@click.option("--lm", "language_model", metavar="FILE", help="The language model, ARPA text.  Needed for a new ini.")
@click.option("--reordering-table", metavar="FILE", help="A reordering table.")
@click.option("--reordering-type", default="wbe-msd-bidirectional-fe-allff", show_default=True, metavar="TYPE",
              help="What the reordering table holds, for a new ini.")  # fmt: skip
@click.option("--distortion-limit", type=int, default=6, show_default=True, metavar="N", help="For a new ini.")
@click.option("--name", metavar="NAME",
              help="Which phrase table of INI to replace, if it has several.")  # fmt: skip
@weight_option
@click.option("-o", "--output", default="-", metavar="FILE", help="The ini to write.  [default: standard output]")
def command(
    ini: str | None, table: str, language_model: str | None, reordering_table: str | None, reordering_type: str,
    distortion_limit: int, name: str | None, weight: float, output: str,
) -> None:  # fmt: skip
    """Write a moses.ini with default weights for these tables; or, given INI, name other tables in it.

    The number of scores is read from the table.  Nothing else of INI changes: comments, order, unknown sections.  INI
    may be of version 1 or 2.
    """
    from moses_compat.files.streams import Output
    from moses_compat.ini.editing import with_reordering_table, with_table_file
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import check_table, choose_table
    from moses_compat.ini.writing import new_moses_ini

    if ini is None:
        if language_model is None:
            raise click.UsageError("a new moses.ini needs --lm")
        if name is not None:
            raise click.UsageError("--name picks one of the phrase tables of INI")
        check_outputs([table, language_model, *([reordering_table] if reordering_table else [])], [output])
        text = new_moses_ini(
            os.path.abspath(table), _columns(table), os.path.abspath(language_model), _order(language_model),
            os.path.abspath(reordering_table) if reordering_table else None, reordering_type, distortion_limit,
        )  # fmt: skip
    else:
        there = read_moses_ini(ini)
        check_outputs([table, ini, *([reordering_table] if reordering_table else []), *there.paths], [output])
        chosen = choose_table(there, table, name)
        check_table(there, chosen)
        if reordering_table:
            there = with_reordering_table(there, os.path.abspath(reordering_table))
        text = with_table_file(there, chosen, table, _columns(table), weight, output)
    with Output(output) as out:
        out.write_text(text.encode(*ENCODING))


def _columns(table: str) -> int:
    """Scores of an entry of a table."""
    from moses_compat.files.streams import Input
    from moses_compat.tables.blocks import raw_blocks

    with Input(table) as source:
        columns = next((block.scores for block in raw_blocks(source)), -1)
    if columns < 0:
        raise PhraseToolError(f"{table}: holds no phrase-table entry")
    return columns


def _order(language_model: str) -> int:
    """Order of a language model."""
    from moses_compat.engine.arpa import read_order
    from moses_compat.files.streams import Input

    with Input(language_model) as source:
        return read_order(source)
