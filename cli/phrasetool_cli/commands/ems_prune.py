"""`phrasetool ems-prune`: prune as Moses' experiment management system calls a pruner."""

from __future__ import annotations

import glob
import os
import re

import click

from phrasetool.errors import DataError
from phrasetool_cli.commands.prune import command as prune

_EXAMPLE = """\b
Example:
  phrasetool ems-prune -t 0.7 -m demo-output/model \\
      demo-output/engine/phrase-table small-phrase-table
"""
_FACTORS = re.compile(r"\.\d+(,\d+)*-\d+(,\d+)*$")


@click.command(
    epilog=_EXAMPLE,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS OF PRUNE]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="IN OUT")
def command(arguments: tuple[str, ...]) -> None:
    """Prune a table as called by Moses' EMS.

    Reads IN.gz (or IN) and writes OUT.gz, as `custom-phrase-table-pruning` of Moses' EMS requires.
    EMS appends the names of the two tables without their ending.  A factored table with a suffix, such as
    IN.0-0,1.gz, is found, too, and written with the same suffix.  The options are those of `phrasetool prune`.

    \b
    In the [TRAINING] section of an EMS configuration:
      custom-phrase-table-pruning =
        "phrasetool ems-prune -m /models/brae --target-size 0.9"

    """
    if len(arguments) < 2 or any(name.startswith("-") for name in arguments[-2:]):
        raise click.UsageError("expected the options of prune, then IN and OUT")
    *options, stem, output = arguments
    if any(option.startswith(("-o", "--output", "--sweep")) for option in options):
        raise click.UsageError("the output is OUT.gz; leave out --output and --sweep")
    table, suffix = _find(stem)
    parent = click.get_current_context().parent
    defaults = parent.default_map if parent else None
    prune.main(
        [table, *options, "-o", f"{output.removesuffix('.gz')}{suffix}.gz"],
        prog_name="phrasetool ems-prune", standalone_mode=False, help_option_names=["-h", "--help"],
        default_map=(defaults or {}).get("prune"),
    )  # fmt: skip


def _find(stem: str) -> tuple[str, str]:
    """Return the table with a file name stem, and the suffix of its factors."""
    for path in (f"{stem}.gz", stem):
        if os.path.isfile(path):
            return path, ""
    tables = {}
    for path in sorted(glob.glob(glob.escape(stem) + ".*")):
        suffix = path.removesuffix(".gz")[len(stem) :]
        if _FACTORS.fullmatch(suffix) and (suffix not in tables or path.endswith(".gz")):
            tables[suffix] = path
    if len(tables) == 1:
        return next((path, suffix) for suffix, path in tables.items())
    if tables:
        raise DataError(stem, f"several tables have this name: {', '.join(tables.values())}; prune each one separately")
    raise DataError(stem, "no such table, with or without .gz")
