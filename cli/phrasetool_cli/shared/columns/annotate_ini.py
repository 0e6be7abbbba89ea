"""The moses.ini that a command writes beside a table with more columns."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from phrasetool_cli.shared.given_options import is_given
from phrasetool_cli.shared.output_checks import check_outputs

if TYPE_CHECKING:
    from moses_compat.jobs.annotate import IniEdit


def ini_edit(
    table: str, output: str, ini: str | None, ini_output: str | None, weight: float, scale: str, relative: bool,
    reordering: str | None = None,
) -> IniEdit | None:  # fmt: skip
    """Check all that can be wrong with an ini, before any work starts; it is to name another reordering table, too, if
    one is given."""
    if ini is None and ini_output is None:
        if is_given("weight"):
            raise click.UsageError("--weight is for the ini that --moses-ini-out writes")
        if relative:
            raise click.UsageError("--relative is for the ini that --moses-ini-out writes")
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

    from moses_compat.jobs.annotate import IniEdit, ini_beside

    there = ini_beside(table, ini)
    check_outputs([table, ini, *there.paths], [output, ini_output, reordering])
    if reordering:
        from moses_compat.ini.editing import with_reordering_table

        there = with_reordering_table(there, os.path.abspath(reordering))
    return replace(IniEdit.of(there, table, output, ini_output, weight), relative=relative)
