"""`phrasetool moses-ini`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from phrasetool_cli.checks import check_outputs, refuse_unused
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import (
    checked_relative,
    force_option,
    json_document,
    json_option,
    output_option,
    quiet_option,
    relative_option,
    weight_option,
)
from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.tables.blocks import TableScan

_EXAMPLE = """\b
Example:
  phrasetool moses-ini --table table.gz --reordering-table reordering.gz --lm lm.arpa.gz -o moses.ini
  phrasetool moses-ini moses.ini --table table.annotated.gz -o annotated.ini
  phrasetool moses-ini moses.ini --table small.gz --reordering-table small.reordering.gz -o small.ini
"""


@click.command(cls=SectionedCommand, dependent=(("name", "ini"),), epilog=_EXAMPLE)
@click.argument("ini", required=False)
@sections(
    "Tables",
    click.option("--table", required=True, metavar="FILE", help="Phrase table."),
    click.option("--reordering-table", metavar="FILE", help="Reordering table."),
    output_option("The ini to write."),
    "New ini",
    click.option("--lm", "language_model", metavar="FILE",
                 help="Language model, ARPA text or a binary file of kenlm.  [required without INI]"),
    click.option("--reordering-type", default="wbe-msd-bidirectional-fe-allff", metavar="TYPE",
                 help="Type of the reordering table."),
    click.option("--distortion-limit", type=int, default=6, metavar="N",
                 help="Maximum words of a jump; -1: any."),
    "Existing ini",
    click.option("--name", metavar="NAME", help="Feature name of the phrase table to replace, if INI has "
                                                "several."),
    weight_option,
    None,
    relative_option,
    json_option,
    force_option,
    quiet_option,
)  # fmt: skip
def command(
    ini: str | None, table: str, language_model: str | None, reordering_table: str | None, reordering_type: str,
    distortion_limit: int, name: str | None, weight: float, output: str,
    relative: bool, json_file: str | None, force: bool, quiet: bool,
) -> None:  # fmt: skip
    """Write a moses.ini, or replace the tables of one.

    Without INI, writes a new ini with default weights for these tables; with INI, replaces the tables in it.  The
    number of scores is read from the table.  Nothing else in INI changes: comments, order, unknown sections.  INI may
    be of version 1 or 2.
    """
    from moses_compat.files.streams import Output
    from moses_compat.ini.editing import with_relative_paths
    from moses_compat.ini.moses_ini import ENCODING
    from moses_compat.ini.reading import parse_moses_ini
    from moses_compat.tables.blocks import TableScan

    scan = TableScan(force=force, warn=TerminalWatch(quiet).warn)
    relative = checked_relative(relative, output)
    document = json_document(json_file, [ini, table, language_model, reordering_table], [output])
    if ini is None:
        if language_model is None:
            raise click.UsageError("a new moses.ini needs --lm")
        if name is not None:
            raise click.UsageError("--name picks one of the phrase tables of INI")
        refuse_unused({"weight": "the table of an INI, whose columns may be fewer"})
        if reordering_table is None:
            refuse_unused({"reordering_type": "a reordering table; give one with --reordering-table"})
        check_outputs([table, language_model, reordering_table], [output])
        text = _new(table, language_model, reordering_table, reordering_type, distortion_limit, scan)
    else:
        names = ("language_model", "reordering_type", "distortion_limit")
        refuse_unused(dict.fromkeys(names, f"a new moses.ini; {ini} has its own, which is kept"))
        text = _changed(ini, table, reordering_table, name, weight, output, scan)
    if relative:
        text = with_relative_paths(parse_moses_ini(output, text))
    with Output(output) as out:
        out.write_text(text.encode(*ENCODING))
    written = parse_moses_ini(output, text)
    features = [{"name": line.name, **line.arguments} for line in written.features]
    document({"ini": output, "version": written.version, "features": features, "weights": written.weights})


def _new(
    table: str, language_model: str, reordering_table: str | None, reordering_type: str, distortion_limit: int,
    scan: TableScan,
) -> str:  # fmt: skip
    from moses_compat.engine.language_models import order_of
    from moses_compat.ini.editing import new_moses_ini
    from moses_compat.tables.opening import scores_of_table
    from phrasetool.smt.decoder.features import ReorderingModel

    columns = scores_of_table(table, scan)
    try:
        reordering = ReorderingModel.parse(reordering_type)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--reordering-type") from error
    if reordering_table:
        _check_reordering(reordering_table, reordering.columns, not reordering.source_only, scan)
    return new_moses_ini(
        os.path.abspath(table), columns, os.path.abspath(language_model), order_of(language_model),
        os.path.abspath(reordering_table) if reordering_table else None, reordering_type, distortion_limit,
    )  # fmt: skip


def _changed(
    ini: str, table: str, reordering_table: str | None, name: str | None, weight: float, output: str, scan: TableScan
) -> str:
    from moses_compat.engine.model_lines import number_of
    from moses_compat.ini.editing import with_reordering_table, with_table_file
    from moses_compat.ini.reading import read_moses_ini
    from moses_compat.ini.tables import check_table, choose_table
    from moses_compat.tables.opening import scores_of_table
    from phrasetool.smt.decoder.features import ReorderingModel

    moses_ini = read_moses_ini(ini)
    check_outputs([table, ini, reordering_table, *moses_ini.paths], [output])
    chosen = choose_table(moses_ini, table, name)
    check_table(moses_ini, chosen)
    if reordering_table:
        moses_ini = with_reordering_table(moses_ini, os.path.abspath(reordering_table))
        (feature,) = (line for line in moses_ini.features if line.kind == "LexicalReordering")
        try:
            # The tables of hierarchical models, which only Moses supports, have the same columns.
            reordering = ReorderingModel.parse(feature.arguments.get("type", "").replace("hier", "wbe"))
        except ValueError as error:
            raise moses_ini.error(f"{feature.name}: {error}", feature.line) from error
        has_targets = not reordering.source_only or "output-factor" in feature.arguments
        _check_reordering(reordering_table, reordering.columns, has_targets, scan)
    columns = scores_of_table(table, scan)
    if columns == number_of(moses_ini, chosen, "num-features", 1):
        refuse_unused({"weight": f"additional columns; {table} has as many scores as {chosen.name} in {ini}"})
    return with_table_file(moses_ini, chosen, table, columns, weight, output)


def _check_reordering(path: str, columns: int, has_targets: bool, scan: TableScan) -> None:
    """Refuse a file that is not a reordering table with this number of scores; binary tables are not read.

    Args:
        has_targets: whether Moses expects a target phrase in each line.

    Raises:
        DataError: the file is missing, is not a reordering table or has a different number of fields or scores.
    """
    from moses_compat.tables.opening import REORDERING_TABLE, scores_of_source_table, scores_of_table
    from phrasetool.errors import DataError

    # Moses adds the endings automatically.
    names = [name for name in (path, f"{path}.gz", f"{path}.minlexr") if os.path.exists(name)]
    text = names[0] if names else path
    if text.endswith(".minlexr"):
        return
    scores = scores_of_table(text, scan, REORDERING_TABLE) if has_targets else scores_of_source_table(text)
    if scores != columns:
        raise DataError(text, f"the entries have {scores} scores, but the model expects {columns}", 1)
