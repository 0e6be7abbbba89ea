"""The moses.ini that `phrasetool annotate` writes beside a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from phrasetool_cli.commands.moses_ini import edited
from phrasetool_cli.shared.click_options import check_outputs

if TYPE_CHECKING:
    from moses_compat.files.streams import Output
    from moses_compat.ini.lines import FeatureLine
    from moses_compat.ini.moses_ini import MosesIni


@dataclass(frozen=True)
class IniEdit:
    """What happens to a moses.ini.

    Attributes:
        ini: as it is.
        feature: the table that is annotated.
        table: what is to come into its place.
        output: the ini to write.
        weight: of each new column.
    """

    ini: MosesIni
    feature: FeatureLine
    table: str
    output: str
    weight: float

    @property
    def scores(self) -> int:
        """How many scores the ini says the table has."""
        return int(self.feature.arguments.get("num-features", "1"))

    def check(self, scores: int) -> None:
        """Refuse a table with other than these scores; -1 stands for a table without entries."""
        if scores not in (-1, self.scores):
            raise self.ini.error(
                f"{self.feature.name} has num-features={self.scores}, but the entries of the table have {scores} "
                "scores; Moses stops at that",
                self.feature.line,
            )

    def write_to(self, out: Output, columns: int) -> None:
        """Write the ini for so many new columns."""
        from moses_compat.ini.moses_ini import ENCODING

        text = edited(self.ini, self.feature, self.table, self.scores + columns, self.weight, self.output)
        out.write_text(text.encode(*ENCODING))
        out.flush()


def is_given(option: str) -> bool:
    """Whether an option stands on the command line."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def ini_edit(
    table: str, output: str, ini: str | None, ini_output: str | None, weight: float, scale: str
) -> IniEdit | None:
    """Check all that can be wrong with an ini, before any work starts."""
    if ini is None and ini_output is None:
        if is_given("weight"):
            raise click.UsageError("--weight is for the ini that --moses-ini-out writes")
        return None
    if ini is None or ini_output is None:
        raise click.UsageError("--moses-ini and --moses-ini-out need each other")
    if scale == "raw":
        raise click.UsageError(
            "--scale raw is not for Moses: the logarithm of a negative score is no number, even at weight 0"
        )
    for option, path in (("TABLE", table), ("--output", output), ("--moses-ini-out", ini_output)):
        if path == "-":
            raise click.UsageError(f"with --moses-ini, {option} must be a file")

    from moses_compat.files.streams import Input
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import check_table, find_table
    from moses_compat.tables.blocks import raw_blocks

    # A table that is not there has no place in an ini either.
    Input(table).close()
    there = read_moses_ini(ini)
    check_outputs([table, ini, *there.paths], [output, ini_output])
    feature = find_table(there, table)
    check_table(there, feature)
    edit = IniEdit(there, feature, output, ini_output, weight)
    with Input(table) as source:
        edit.check(next((block.scores for block in raw_blocks(source, 1 << 16)), -1))
    return edit
